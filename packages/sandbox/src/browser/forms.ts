type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** True for an element of a form that has a value. */
export function isField(element: unknown): element is Field {
  return (
    element instanceof HTMLInputElement ||
    element instanceof HTMLSelectElement ||
    element instanceof HTMLTextAreaElement
  );
}

/** The values of a form, without empty ones. A fault's `how` is `once` or a rate. */
export function bodyOf(form: HTMLFormElement): Readonly<Record<string, string | number | boolean>> {
  const body: Record<string, string | number | boolean> = {};
  for (const field of form.elements) {
    if (!isField(field) || field.name === "") continue;
    const { name, value } = field;
    if (field.type === "checkbox") body[name] = field instanceof HTMLInputElement && field.checked;
    else if (name === "how") Object.assign(body, value !== "once" && { rate: Number(value) });
    else if (value !== "") body[name] = value;
  }
  return body;
}

/** Puts a reference into the open form. It gets a random ending, because references must be unique. */
export function fillReference(button: HTMLButtonElement, reference: string): void {
  const form = button.closest(".inner")?.querySelector("form:not([hidden])");
  const field = form?.querySelector<HTMLInputElement>("input[name=reference]");
  if (!field) return;
  field.value = `${reference}-${Math.random().toString(36).slice(2, 7)}`;
  field.focus();
}

/** Explains the chosen option below a choice. `explanations` is JSON: what each does, by its value. */
export function showExplanation(choice: HTMLSelectElement, explanations: string): void {
  const texts = JSON.parse(explanations) as Readonly<Record<string, { readonly does: string }>>;
  const place = choice.form?.querySelector("[data-explanation]");
  if (place) place.textContent = texts[choice.value]?.does ?? "";
}
