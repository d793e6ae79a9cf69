import { clockTime, colouredJson, type Html, html } from "@payhooks/pages";
import type { Attempt, Delivery } from "../deliveries/delivery.ts";
import { faultBadge, pill } from "./parts.ts";

const STATE_TEXTS: Readonly<Record<Delivery["state"], string>> = {
  scheduled: "waiting",
  sending: "sending",
  retrying: "will retry",
  delivered: "acknowledged",
  "gave-up": "gave up",
};

/** One delivery in the dispatch log. The page fetches its attempts when it is opened. */
export function deliveryRow(delivery: Delivery): Html {
  const { id, event, status, attempts, state, nextAttemptAt } = delivery;
  const faults = [...new Set(attempts.flatMap((attempt) => attempt.faults))];
  const tone = state === "delivered" ? "good" : state === "gave-up" ? "bad" : "wait";
  return html`<details class="row" id="delivery-${id}" data-detail="/sandbox/parts/deliveries/${id}">
  <summary>
    <span class="line">${pill(status)}<span class="name">${event}</span><span class="end sub">${clockTime(delivery.createdAt)}</span></span>
    <span class="line"><span class="sub mono">${delivery.reference ?? delivery.deduplicationKey}</span>
      <span class="end"><span class="dots" role="img" aria-label="${attempts.length} attempt${attempts.length === 1 ? "" : "s"}">${attempts.slice(-12).map(dot)}${
        nextAttemptAt && html`<span class="dot next"></span>`
      }</span> <span class="pill ${tone}">${STATE_TEXTS[state]}</span></span></span>
    ${faults.length > 0 && html`<span class="line badges">${faults.map(faultBadge)}</span>`}
    <span class="sub">${delivery.replayOf && "replay · "}${lastProblem(delivery)}${
      nextAttemptAt && html`next at ${clockTime(nextAttemptAt)} · `
    }to ${delivery.url}</span>
  </summary>
  <div class="open" data-detail-here><p class="hint">Loading…</p></div>
</details>`;
}

/** The details of a delivery: every attempt, with its request and its answer. */
export function deliveryDetail(delivery: Delivery): Html {
  const { id, attempts } = delivery;
  const replay = `/sandbox/deliveries/${id}/replay`;
  return html`<div class="actions">
    <button data-post="${replay}">Send again, same bytes</button>
    <button data-post="${replay}" data-body="${JSON.stringify({ resign: true })}">Sign again and send</button>
  </div>
  <dl class="facts">
    <dt>${delivery.flow === "payments" ? "payTxnId" : "idempotency_key"}</dt><dd class="mono">${delivery.deduplicationKey}</dd>
    <dt>address</dt><dd class="mono">${delivery.url}</dd>
    ${delivery.replayOf && html`<dt>replay of</dt><dd class="mono">${delivery.replayOf}</dd>`}
  </dl>
  ${attempts.length === 0 && html`<p class="hint">No attempt was made yet.</p>`}
  ${[...attempts].reverse().map((attempt, index) => attemptCard(attempt, index === 0))}`;
}

function attemptCard(attempt: Attempt, isOpen: boolean): Html {
  const { number, at, answer, error, faults, durationMs } = attempt;
  return html`<details class="attempt" ${isOpen && html`open`}>
    <summary><strong>Attempt ${number}</strong> ${clockTime(at)}
      <span class="pill ${attempt.acknowledged ? "good" : "bad"}">${answer ? `answer ${answer.status}` : "no answer"}</span>
      ${faults.map(faultBadge)}
      <span class="end">${durationMs} ms</span></summary>
    ${error && html`<div class="part"><p class="problem">${error}</p></div>`}
    ${part("Payload", colouredJson(JSON.stringify(JSON.parse(attempt.body), null, 2)))}
    ${attempt.canonicalString !== null && part("Canonical string, which the signature covers", canonical(attempt.canonicalString))}
    ${part("Signature", html`${attempt.signature ?? "none: no secret is set"}`)}
    ${part("Request headers", html`${Object.entries(attempt.headers).map(([name, value]) => html`${name}: ${value}\n`)}`)}
    ${answer && part("Answer", html`${answer.bodyExcerpt || "(empty body)"}`)}
  </details>`;
}

function part(title: string, content: Html): Html {
  return html`<div class="part"><h4>${title}</h4><pre tabindex="0">${content}</pre></div>`;
}

function canonical(text: string): Html {
  return html`${text.split("&").map((part, index) => html`${index > 0 && html`&amp;<wbr>`}${part}`)}`;
}

function dot({ acknowledged }: Attempt): Html {
  return html`<span class="dot ${acknowledged && "good"}"></span>`;
}

function lastProblem({ state, attempts }: Delivery): string {
  const last = attempts.at(-1);
  if (last === undefined || state === "delivered") return "";
  return `${last.error ?? `answer ${last.answer?.status}`} · `;
}
