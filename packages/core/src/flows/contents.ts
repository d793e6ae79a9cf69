import type { StoredDelivery } from "../inbox/record/event.ts";
import { isDocumented, isFieldName } from "../names/fields.ts";
import { SPECIFIED_NAMES } from "../names/service-names.ts";
import type { ContentField, Contents, SignedPiece } from "../protocol/contents.ts";
import { decodeUtf8, type JsonObject, parseJsonBody } from "../protocol/json.ts";
import { CALLBACK_FIELDS } from "../signature/canonical.ts";
import type { CallbackRules, Wire } from "./callback.ts";
import type { Flow } from "./flow.ts";
import { callbackJudge } from "./judgement.ts";
import { rulesOf } from "./payments-options.ts";

/**
 * Shows a person a stored delivery. `rules` are those of the receiver; without them, the names are those of the
 * specification. Its time grows linearly with the length of the delivery.
 */
export function contentsReader(rules: CallbackRules): (delivery: StoredDelivery) => Contents {
  const judge = callbackJudge(rules);
  return ({ arrivedBy, content }) => {
    const text = decodeUtf8(content);
    if (arrivedBy === "webhook") {
      return { fields: membersOf(text), signed: [{ name: null, text }], candidates: null };
    }
    if (arrivedBy === "lookup") return { fields: membersOf(text), signed: [], candidates: null };
    const { wire } = rules;
    const signed = piecesOf(text, (name) => wire.byName.get(name)?.key ?? name);
    const judgement = judge(text);
    const isKnown = (name: string): boolean => isDocumented(name) || wire.extra.includes(name);
    if (judgement.kind !== "certain") {
      const names = new Set(signed.flatMap(({ name }) => (name !== null && isKnown(name) ? [name] : [])));
      const fields = [...names].map((name) => ({ name, value: null }));
      return { fields, signed, candidates: judgement.candidates };
    }
    const { texts } = judgement;
    const names = [...CALLBACK_FIELDS, ...wire.extra];
    const fields = names.flatMap((name): readonly ContentField[] => {
      const value = texts.get(name);
      if (name === "status" && value !== undefined) return statusFields(value, wire);
      if (value !== undefined) return [{ name, value }];
      return judgement.leftOut.includes(name) ? [{ name, value: null }] : [];
    });
    return { fields, signed, candidates: null };
  };
}

/** The status, and the word for it if that is another one. */
function statusFields(word: string, { statusOf }: Wire): readonly ContentField[] {
  const status = statusOf.get(word);
  if (status === undefined) return [{ name: "status", value: word }];
  return [
    { name: "status", value: status },
    { name: "wireStatus", value: word },
  ];
}

/** Shows a person a stored delivery, for a program that does not know the receiver's options. */
export function contentsOf(delivery: StoredDelivery): Contents {
  defaultReader ??= contentsReader(rulesOf({}, SPECIFIED_NAMES, false));
  return defaultReader(delivery);
}

let defaultReader: ReturnType<typeof contentsReader> | null = null;

/** Shows a person a stored delivery. If its flow is off, this is what a program without the receiver's options sees. */
export function contentsWithFlows(flows: FlowContents, delivery: StoredDelivery): Contents {
  return (flows.get(delivery.flow)?.contents ?? contentsOf)(delivery);
}

type FlowContents = ReadonlyMap<string, Pick<Flow, "contents">>;

/**
 * The contents with `mark` in place of the values of some fields, in every place where they appear. In the signed text,
 * everything from a hidden name to the next documented name is hidden, because the value may reach that far. The whole
 * text of a webhook is hidden if it has a hidden member, or cannot be read.
 */
export function hideFields(
  { fields, signed }: Omit<Contents, "candidates">,
  names: readonly string[],
  mark: string,
): Omit<Contents, "candidates"> {
  if (names.length === 0) return { fields, signed };
  // A name may be a path itself, or have a dot in it.
  const isHidden = (path: string): boolean => names.some((name) => `.${path}.`.includes(`.${name}.`));
  // A value may have another field's name in it, as the wire spells it.
  const keys = new Map(signed.flatMap(({ name, text }) => (name === null ? [] : [[wireNameOf(text), name]])));
  const keyOf = (name: string): string => keys.get(name) ?? name;
  const hidesText = fields.length === 0 || fields.some(({ name }) => isHidden(name));
  return {
    fields: fields.map(({ name, value }) => {
      if (value === null) return { name, value };
      return {
        name,
        value: isHidden(name) ? mark : joinPieces(hidePieces(piecesOf(value, keyOf), names, mark)),
      };
    }),
    signed: signed.every(({ name }) => name === null)
      ? signed.map(({ name, text }) => ({ name, text: hidesText ? mark : text }))
      : hidePieces(signed, names, mark),
  };
}

function hidePieces(
  pieces: readonly SignedPiece[],
  names: readonly string[],
  mark: string,
): readonly SignedPiece[] {
  let isHidden = false;
  return pieces.map(({ name, text }) => {
    const wireName = wireNameOf(text);
    const isHiddenField = name !== null && (names.includes(name) || names.includes(wireName));
    if (isHiddenField || (name !== null && isDocumented(name))) isHidden = isHiddenField;
    if (!isHidden) return { name, text };
    const separator = text.startsWith("&") ? "&" : "";
    return { name, text: isHiddenField ? `${separator}${wireName}=${mark}` : `${separator}${mark}` };
  });
}

function joinPieces(pieces: readonly SignedPiece[]): string {
  return pieces.map(({ text }) => text).join("");
}

/** The name that a piece of the signed text begins with. */
function wireNameOf(text: string): string {
  return text.slice(text.startsWith("&") ? 1 : 0, Math.max(0, text.indexOf("=")));
}

/** A text, cut before every `&` that a name may follow. `keyOf` gives the name of a field in events. */
function piecesOf(text: string, keyOf: (name: string) => string): readonly SignedPiece[] {
  const pieces: { name: string | null; text: string }[] = [];
  for (const [index, part] of text.split("&").entries()) {
    const equals = part.indexOf("=");
    const name = equals > 0 && isFieldName(part.slice(0, equals)) ? keyOf(part.slice(0, equals)) : null;
    const lastPiece = pieces.at(-1);
    const whole = index === 0 ? part : `&${part}`;
    if (name === null && lastPiece !== undefined) lastPiece.text += whole;
    else pieces.push({ name, text: whole });
  }
  return pieces;
}

/** The members of a JSON object that are no objects themselves, by their path. Empty if the text is no such object. */
function membersOf(text: string): readonly ContentField[] {
  const body = parseJsonBody(Buffer.from(text));
  if (body === null || body.flaw !== null) return [];
  const fields: ContentField[] = [];
  const add = (object: JsonObject, path: string): void => {
    for (const [name, value] of Object.entries(object)) {
      if (typeof value === "object" && value !== null && !Array.isArray(value))
        add(value as JsonObject, `${path}${name}.`);
      else
        fields.push({ name: path + name, value: typeof value === "string" ? value : JSON.stringify(value) });
    }
  };
  add(body.object, "");
  return fields;
}
