/**
 * What a word is searched and indexed as: its stem, and the stems of words that mean the same. VitePress sends the text of this
 * function to the browser, so it uses nothing that is outside of it.
 */
export function processTerm(term) {
  const stemOf = (word) => {
    const stem = word.replace(/(?:ments?|ations?|ings?|ies|ers?|ed|es|[esy])$/, "");
    return stem.length < 3 ? word : stem;
  };
  const meaning = {
    backup: ["restore"],
    dlq: ["held"],
    duplicate: ["copy", "deduplication"],
    gdpr: ["erase", "redact", "personal"],
    idempotent: ["deduplication"],
    k8s: ["kubernetes"],
    latency: ["performance"],
    monitoring: ["alert", "metric", "notice"],
    opentelemetry: ["trace", "span"],
    otel: ["opentelemetry", "trace"],
    pg: ["postgresql"],
    postgres: ["postgresql"],
    quarantine: ["held"],
    throughput: ["performance"],
    upgrade: ["version", "migrate", "moving"],
    webhook: ["delivery"],
  };
  const word = term.toLowerCase();
  const stem = stemOf(word);
  const same = Object.entries(meaning).find(([one]) => stemOf(one) === stem)?.[1] ?? [];
  return same.length === 0 ? stem : [stem, ...same.map(stemOf)];
}
