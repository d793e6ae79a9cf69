/**
 * A number from 0.5 up to, but not including, 1.5. A delay is multiplied by it, so that processes which were started
 * together do not act together. `token` is one of the environment's, so a simulation repeats it.
 */
export function jitterOf(token: string): number {
  let hash = 0;
  for (let index = 0; index < token.length; index++)
    hash = (Math.imul(hash, 31) + token.charCodeAt(index)) | 0;
  // The upper bits depend on every character, unlike the lowest ones.
  return 0.5 + ((Math.imul(hash, 0x9e3779b1) >>> 8) & 0xffff) / 0x10000;
}
