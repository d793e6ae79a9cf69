import { showToast } from "@payhooks/pages/browser";

type Method = "POST" | "PUT" | "DELETE";

/** An answer of the sandbox's control API. */
interface ControlAnswer {
  readonly success: boolean;
  readonly data?: { readonly message?: string; readonly url?: string };
}

/**
 * Carries out the action of a form or a button, once the user has confirmed it. Its button is disabled in the
 * meantime.
 */
export async function act(
  element: HTMLFormElement | HTMLButtonElement,
  method: Method,
  path: string,
  body?: unknown,
): Promise<void> {
  const { confirm: question } = element.dataset;
  if (question && !confirm(question)) return;
  const button =
    element instanceof HTMLButtonElement
      ? element
      : element.querySelector<HTMLButtonElement>("button:not([type=button])");
  if (button) button.disabled = true;
  try {
    const data = await call(method, path, body);
    showToast("Done");
    if (data?.url && path.endsWith("/checkouts")) open(data.url, "_blank", "noopener");
  } catch (error) {
    showToast(error instanceof Error ? error.message : String(error), true);
  } finally {
    if (button) {
      button.disabled = false;
      if (document.activeElement === document.body && button.isConnected) button.focus();
    }
  }
}

async function call(method: Method, path: string, body: unknown): Promise<ControlAnswer["data"]> {
  const response = await fetch(path, {
    method,
    headers: { "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const { success, data } = (await response.json()) as ControlAnswer;
  if (!success) throw new Error(data?.message ?? `The sandbox answered ${response.status}`);
  return data;
}
