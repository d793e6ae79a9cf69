// Puts the documentation into the package of the core, for editors and agents that have no network.
// Pictures and what is for contributors stay behind. A link to them becomes plain text.
import { rmSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { allPages, sections, writePages, writtenPages } from "./content.mjs";

const folder = join(dirname(fileURLToPath(import.meta.url)), "../packages/core/docs");

/** What is for contributors: a section of the table of contents, and what it leads to. */
const internal = new Set(
  sections()
    .filter(({ heading }) => heading === "Internals")
    .flatMap(({ pages }) => pages.map(({ source }) => source)),
);
const pages = allPages().filter(
  ({ source }) =>
    !internal.has(source) &&
    !/^(?:test|docs\/decisions)\//.test(source) &&
    source !== "packages/pages/README.md",
);
const linked = (page, place) => (place === null ? null : posix.relative(posix.dirname(page.place), place));

rmSync(folder, { recursive: true, force: true });
writePages(folder, writtenPages(linked, pages));
