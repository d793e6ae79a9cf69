import { createHash } from "node:crypto";

/**
 * A number in [0, 1) that depends on the seed and the parts alone. Faults and jitter depend on what they apply to, and
 * not on the order of the calls. So a run can be repeated although deliveries race.
 */
export function draw(seed: string, ...parts: readonly (string | number)[]): number {
  const digest = createHash("sha256")
    .update(JSON.stringify([seed, ...parts]))
    .digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}
