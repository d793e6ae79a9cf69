/** The weights of a change, from the heaviest on, and their headings in CHANGELOG.md. */
export const HEADINGS = { major: "Breaking changes", minor: "New", patch: "Fixed" };

/** The latest of the versions that the packages have, which should be one. */
export function latestVersion(versions) {
  return versions.toSorted((a, b) => a.localeCompare(b, "en", { numeric: true })).at(-1);
}

/** The version after `current` with changes of these kinds. Before 1.0 a breaking change raises the second number. */
export function nextVersion(current, kinds) {
  const [major, minor, patch] = current.split(".").map(Number);
  const heaviest = Object.keys(HEADINGS).find((kind) => kinds.includes(kind));
  if (heaviest === "major" && major > 0) return `${major + 1}.0.0`;
  if (heaviest === "patch") return `${major}.${minor}.${patch + 1}`;
  return `${major}.${minor + 1}.0`;
}

/** The changelog with a section for a version above those that it has. */
export function withSection(changelog, version, changes) {
  const parts = Object.entries(HEADINGS).map(([kind, heading]) => {
    const entries = changes.filter((change) => change.kind === kind);
    return entries.length === 0
      ? ""
      : `\n### ${heading}\n\n${entries.map(({ text }) => `- ${text}\n`).join("")}`;
  });
  const at = changelog.indexOf("\n## ");
  const end = at < 0 ? changelog.length : at;
  return `${changelog.slice(0, end)}\n## ${version}\n${parts.join("")}${changelog.slice(end)}`;
}
