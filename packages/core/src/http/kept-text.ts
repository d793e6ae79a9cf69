/**
 * The bytes of a body that was kept as text; null if they may differ from the sent bytes. Invalid UTF-8 and a byte
 * order mark do not survive as text. Usually that changes the length. If the length is the same, the signature decides.
 */
export function bytesOfText(text: string, contentLength: string | null | undefined): Uint8Array | null {
  const bytes = Buffer.from(text, "utf8");
  return contentLength === String(bytes.byteLength) ? bytes : null;
}
