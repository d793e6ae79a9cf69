import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { type Replacement, withReplaced } from "./core.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** "Cannot find name", and "property does not exist", each with and without a similar name that exists. */
const UNKNOWN_NAME_CODES: ReadonlySet<number> = new Set([2304, 2552, 2339, 2551]);

/**
 * Says which names a mistake uses that the core does not have. Such a mistake would throw when it is reached, and would be
 * found for that reason.
 */
export function unknownNameFinder(): (changes: readonly Replacement[]) => Promise<readonly string[]> {
  const parsed = ts.getParsedCommandLineOfConfigFile(
    `${root}tsconfig.sources.json`,
    { incremental: false, noEmit: true, declaration: false, isolatedDeclarations: false },
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} },
  );
  if (parsed === undefined) throw new Error("tsconfig.sources.json cannot be read");
  const { tsBuildInfoFile: _, ...options } = parsed.options;
  const changed = new Map<string, string>();
  let version = 0;
  const service = ts.createLanguageService({
    getScriptFileNames: () => parsed.fileNames.filter((file) => file.includes("/packages/core/src/")),
    getScriptVersion: (file) => (changed.has(file) ? `${version}` : ""),
    getScriptSnapshot: (file) =>
      ts.sys.fileExists(file)
        ? ts.ScriptSnapshot.fromString(changed.get(file) ?? readFileSync(file, "utf8"))
        : undefined,
    getCurrentDirectory: () => root,
    getCompilationSettings: () => options,
    getDefaultLibFileName: (settings) => ts.getDefaultLibFilePath(settings),
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  });
  return async (changes) => {
    version++;
    changed.clear();
    for (const file of new Set(changes.map((change) => change.file)))
      changed.set(`${root}packages/core/src/${file}`, await withReplaced(file, changes));
    return [...changed.keys()]
      .flatMap((file) => service.getSemanticDiagnostics(file))
      .filter(({ code }) => UNKNOWN_NAME_CODES.has(code))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "))
      .filter((message) => !message.includes("type 'never'"));
  };
}
