// The public interface of each package as a text, in its folder `api`: one file for each entry point, made of the
// declarations that are published. A change of what users can import shows up in review as a change of these files.
// `node scripts/api-reports.mjs` compares them with the build; with --write it writes them.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { CompilerState, Extractor, ExtractorConfig } from "@microsoft/api-extractor";

const isWriting = process.argv.includes("--write");
const quiet = { default: { logLevel: "none" } };

/** Declarations and report of each entry point. */
function entriesIn(folder) {
  const { exports = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return Object.entries(exports).flatMap(([subpath, target]) => {
    const types = target.import?.types;
    const name = subpath === "." ? "index" : subpath.slice(2).replaceAll("/", "-");
    return types === undefined ? [] : [{ types: join(folder, types), report: name }];
  });
}

function configurationOf(folder, { types, report }) {
  return ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(folder, "package.json"),
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: types,
      newlineKind: "lf",
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            target: "es2022",
            lib: ["es2023"],
            module: "nodenext",
            strict: true,
            types: ["node"],
            skipLibCheck: true,
          },
          include: ["dist/**/*.d.ts"],
        },
      },
      apiReport: {
        enabled: true,
        // Types that users meet without importing them, too: in the reports of the two entry points for merchants' code, and not in
        // each of the others again.
        includeForgottenExports: report === "index" || report === "sources",
        reportFileName: report,
        reportFolder: join(folder, "api"),
        reportTempFolder: join(folder, "node_modules", ".cache", "api"),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: quiet,
        extractorMessageReporting: quiet,
        tsdocMessageReporting: quiet,
      },
    },
  });
}

const changed = [];
for (const name of readdirSync("packages")) {
  const folder = resolve("packages", name);
  const entries = entriesIn(folder);
  if (entries.length === 0) continue;
  mkdirSync(join(folder, "api"), { recursive: true });
  const written = new Set(entries.map(({ report }) => `${report}.api.md`));
  for (const file of readdirSync(join(folder, "api")).filter((one) => !written.has(one))) {
    changed.push(`packages/${name}/api/${file}`);
    if (isWriting) rmSync(join(folder, "api", file));
  }
  const configurations = entries.map((entry) => configurationOf(folder, entry));
  const additionalEntryPoints = configurations.map((one) => one.mainEntryPointFilePath);
  const compilerState = CompilerState.create(configurations[0], { additionalEntryPoints });
  for (const [at, configuration] of configurations.entries()) {
    const path = `packages/${name}/api/${entries[at].report}.api.md`;
    const wasThere = existsSync(path);
    const { apiReportChanged } = Extractor.invoke(configuration, {
      localBuild: isWriting,
      compilerState,
      messageCallback: (message) => {
        message.handled = true;
      },
    });
    if (apiReportChanged || !wasThere) changed.push(path);
  }
}

if (changed.length > 0 && !isWriting) {
  process.stderr.write(
    `The public interface is not the one in these reports:\n${changed.map((path) => `  ${path}\n`).join("")}Run \`npm run api\`, look at what it changed, and commit it with the change.\n`,
  );
  process.exit(1);
}
for (const path of changed) process.stdout.write(`${path}\n`);
