/**
 * Computes the next text from the stored one. It must be synchronous and pure, because it may be computed several times.
 *
 * @param text null if there is none.
 * @param now the store's clock, in milliseconds since the epoch.
 */
export type TextChange<T> = (
  text: string | null,
  now: number,
) => {
  readonly answer: T;
  /** The text to write, of at most 16,000 characters; null if the stored one stays as it is. */
  readonly text: string | null;
};

/**
 * Small texts beside the events, which all processes on the same data share. A text is kept for 30 days after it was
 * last written. Names have up to 63 lowercase letters, digits, `-` and `:`, and begin with a letter.
 */
export interface SharedTexts {
  /** The text with this name; null if there is none. */
  read(name: string): Promise<string | null>;
  /**
   * Changes a text by compare-and-swap, so that no change of another process gets lost. Waits for the store for 2 s at most.
   * @throws PayhooksError `ERR_OPTION_INVALID` for a name or a text that is not possible, or what the inbox throws.
   */
  change<T>(name: string, compute: TextChange<T>): Promise<T>;
}
