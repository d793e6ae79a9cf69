import { type Html, html } from "./html.ts";

/** The meaning of a colour. */
export type Tone = "good" | "bad" | "wait" | "";

/** A coloured label for a state. Only screen readers read `before`. */
export function pill(text: string, tone: Tone, before = ""): Html {
  return html`<span class="pill ${tone}">${before && html`<span class="sr">${before}</span>`}${text}</span>`;
}

/** An ISO time as hours, minutes and seconds in UTC. The page's script adds the local time. */
export function clockTime(iso: string): Html {
  return html`<time datetime="${iso}" title="${iso}">${iso.slice(11, 19)}</time>`;
}

/** Indented JSON with coloured member names. */
export function colouredJson(indented: string): Html {
  return html`${indented.split("\n").map((line) => {
    const match = /^( *)("(?:[^"\\]|\\.)*")(: .*)$/.exec(line);
    return match ? html`${match[1]}<span class="key">${match[2]}</span>${match[3]}\n` : html`${line}\n`;
  })}`;
}
