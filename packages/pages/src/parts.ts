import { type Html, html } from "./html.ts";

/** What a colour says. */
export type Tone = "good" | "bad" | "wait" | "";

/** A word about a state, in a colour; `before` is for screen readers only. */
export function pill(text: string, tone: Tone, before = ""): Html {
  return html`<span class="pill ${tone}">${before && html`<span class="sr">${before}</span>`}${text}</span>`;
}

/** An ISO time as hours, minutes and seconds in UTC; the page's script adds the local ones. */
export function clockTime(iso: string): Html {
  return html`<time datetime="${iso}" title="${iso}">${iso.slice(11, 19)}</time>`;
}

/** Indented JSON with its member names coloured. */
export function colouredJson(indented: string): Html {
  return html`${indented.split("\n").map((line) => {
    const match = /^( *)("(?:[^"\\]|\\.)*")(: .*)$/.exec(line);
    return match ? html`${match[1]}<span class="key">${match[2]}</span>${match[3]}\n` : html`${line}\n`;
  })}`;
}
