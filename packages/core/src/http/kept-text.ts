/**
 * The bytes of a body that was kept as text; null if they may not be those that were sent. Bytes that are no UTF-8, and a byte
 * order mark, do not survive as text, and then the length differs. If it is the same all the same, the signature decides.
 */
export function bytesOfText(text: string, contentLength: string | null | undefined): Uint8Array | null {
  const bytes = Buffer.from(text, "utf8");
  return contentLength === String(bytes.byteLength) ? bytes : null;
}
