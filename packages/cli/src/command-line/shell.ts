/** A text as a shell takes it for one word. */
export function quoteForShell(text: string): string {
  return /^[\w.:@%+/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
