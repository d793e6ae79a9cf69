// A manifest says each entry point of its package once, in `exports`: the source, which only this workspace uses, and what is built of
// it. The rest follows from that when the package is packed.

/** The members of a published manifest that say where its entry points are. */
function publishedEntryPoints({ exports }) {
  const published = Object.entries(exports).map(([path, target]) => [path, withoutSource(target)]);
  const entries = published.filter(([, target]) => typeof target !== "string");
  return {
    exports: Object.fromEntries(published),
    ...(entries.length > 0 && forOlderTools(entries)),
  };
}

function withoutSource(target) {
  if (typeof target === "string") return target;
  const { "payhooks-source": _source, ...built } = target;
  return built;
}

/** The fields for tools that do not know `exports`. */
function forOlderTools([[, main], ...others]) {
  const typesOf = ([path, { require }]) => [path.slice("./".length), [require.types]];
  return {
    main: main.require.default,
    module: main.import.default,
    types: main.require.types,
    ...(others.length > 0 && { typesVersions: { "*": Object.fromEntries(others.map(typesOf)) } }),
  };
}

module.exports = { publishedEntryPoints };
