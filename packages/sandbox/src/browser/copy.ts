import { showToast } from "@payhooks/pages/browser";

/** Copies a text. Pages that came over plain HTTP from another machine have no clipboard. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showToast("Copied");
  } catch {
    const advice = isSecureContext
      ? "The browser does not allow copying here."
      : "Browsers copy only over HTTPS or on this machine. Select the text, and copy it yourself.";
    showToast(advice, true);
  }
}
