/**
 * Which command runs which test.
 *
 * `npm test` says in minutes whether a change is right: it runs every project but those whose names begin with `rest`.
 * These are for `npm run test:rest`: what takes long by its nature, below with the reason.
 *
 * A new file goes to a project by its folder. If it is slow, name it in `slow` or, among the proofs of security, in
 * `longProofs`.
 */
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { TestProjectInlineConfiguration, ViteUserConfig } from "vitest/config";
import { deploySuites, hasDeployTools } from "./scripts/deploy-tools.mjs";
import { hasMariadb, mariadbSuites } from "./scripts/mariadb-server.mjs";
import { hasPgbouncer, pgbouncerSuites } from "./scripts/pgbouncer.mjs";
import { postgresBin, postgresSuites } from "./scripts/postgres-server.mjs";
import { hasPrometheus, prometheusSuites } from "./scripts/prometheus.mjs";
import { hasRedis, redisSuites } from "./scripts/redis-server.mjs";

/** Slow files, by the reason. */
const slow: Readonly<Record<string, readonly string[]>> = {
  "builds an application with Next.js, and starts it": [
    "test/conformance/next.test.ts",
    "test/examples/next.test.ts",
    "test/package/next.test.ts",
  ],
  "packs the packages, and installs them into new projects": [
    "test/package/adding-a-store.test.ts",
    "test/package/starters.test.ts",
    "test/package/tarballs.test.ts",
  ],
  "starts a process for each case": ["test/vectors/openssl.test.ts"],
  "starts several Redis servers, which take over from each other": [
    "test/contract/redis-{cluster,replicas,sentinel}.test.ts",
  ],
  "runs the whole contract on a PostgreSQL in this process, which is slow": ["test/contract/pglite.test.ts"],
  "runs the whole contract once more, with a seal": ["test/contract/{sqlite,redis}-sealed.test.ts"],
  "starts PostgreSQL": [
    "test/examples/deploy.test.ts",
    "test/examples/postgres.test.ts",
    "test/examples/shop.test.ts",
    "test/effects/**/*.test.ts",
    "test/otel/traces.test.ts",
  ],
  "starts Prometheus": ["test/otel/prometheus.test.ts"],
  "tries the tools that measure, on which no user depends": ["test/bench/**/*.test.ts"],
  "installs and builds the documentation's site": ["test/site/**/*.test.ts"],
  "installs with npm": ["test/runtimes/**/*.test.ts"],
};

/** What the inboxes on PostgreSQL and MariaDB promise. Each file starts a server, whose disk it waits for. */
const onDatabaseServers = [
  "test/contract/{postgres,mysql}*.test.ts",
  "test/simulation/agreement/{postgres,mysql}.test.ts",
];

/** Proofs of security with random cases by the thousand. */
const longProofs = ["test/security/{fuzz,fuzz-web,mutants,oracle}.test.ts"];

/** Histories by the ten thousand, and mistakes that are played until they are found, on all processors. */
const manyHistories = ["test/simulation/{many,mistakes}.test.ts"];

/** Processes, servers and networks that die, on a real clock; and hints between processes, which are measured. */
const faultsOnSqlite = ["test/faults/sqlite.test.ts"];
const faultsOnPostgres = ["test/faults/postgres*.test.ts"];
const faultsOnMysql = ["test/faults/mysql*.test.ts"];
const faultsOnRedis = ["test/faults/!(sqlite|postgres*|mysql*).test.ts", "test/contract/redis-hints.test.ts"];

/** One more than there are cores, since many files wait for a process or a server. Vitest alone takes one less. */
const WORKERS = availableParallelism() + 1;

/** One limit for everything that waits: so long that a busy machine is no reason to fail. */
const MAX_WAIT_MS = 180_000;

/**
 * Faults are measured on a real clock, which busy neighbours would disturb. So these files begin when all other projects have ended,
 * and at most three of them run at one time. Each uses a quarter of a processor, since it mostly waits for what it has broken.
 * `.ci/run` has them beside all other tests, which have a lower priority there.
 */
const FAULTS: TestProjectInlineConfiguration["test"] = {
  isolate: true,
  maxWorkers: 3,
  sequence: { groupOrder: 1 },
  globalSetup: "test/faults/harness/global-setup.ts",
};

/** Workspace packages resolve to their TypeScript source: tests need no build and never see a stale one. */
const conditions = ["payhooks-source", "module", "node", "development|production"];

/** What needs a server that is not installed here: `npm test` and `npm run test:rest` name it in red. */
export const withoutServer: readonly string[] = [
  ...(hasRedis() ? [] : redisSuites),
  ...(postgresBin() === null ? postgresSuites : []),
  ...(hasMariadb() ? [] : mariadbSuites),
  ...(hasPgbouncer() ? [] : pgbouncerSuites),
  ...(hasPrometheus() ? [] : prometheusSuites),
  ...(hasDeployTools() ? [] : deploySuites),
];

/** Next.js replaces `Math.random` and others in its process, so no other test may share it. */
const changesGlobals = ["test/conformance/next-prerender.test.ts"];

const LINKS_ARE_FOLLOWED = "./test/support/links-are-followed.ts";

/** Hooks that each test file of a package needs. They cannot be in what the files import, which is loaded once for all of them. */
const hooksOf: Readonly<Record<string, readonly string[]>> = {
  cli: ["packages/cli/test/support/own-folder.ts"],
  sandbox: ["packages/sandbox/test/support/close-all.ts"],
};

const withTests = (folder: string): string[] =>
  readdirSync(folder).filter((name) => existsSync(`${folder}/${name}/test`));

const config: ViteUserConfig = {
  test: {
    reporters: ["default", "./scripts/skipped-reporter.mjs"],
    projects: [
      ...withTests("packages").map((name) =>
        project(name, [`packages/${name}/test/**/*.test.ts`], {
          // The command line as one file, once for all of its tests.
          ...(name === "cli" && { globalSetup: "packages/cli/test/support/bundle.ts" }),
          setupFiles: [LINKS_ARE_FOLLOWED, ...(hooksOf[name] ?? [])],
        }),
      ),
      ...withTests("examples").map((name) =>
        project(`example-${name}`, [`examples/${name}/test/**/*.test.ts`]),
      ),
      project("workspace", ["test/**/*.test.ts"], {
        exclude: [
          "test/security/**",
          "test/simulation/**",
          "test/faults/**",
          ...changesGlobals,
          ...faultsOnRedis,
          ...onDatabaseServers,
          ...Object.values(slow).flat(),
        ],
      }),
      project("alone", changesGlobals, { isolate: true }),
      project("security", ["test/security/**/*.test.ts"], {
        exclude: longProofs,
        globalSetup: "test/security/global-setup.ts",
      }),
      project("simulation", ["test/simulation/**/*.test.ts"], {
        exclude: [...manyHistories, ...onDatabaseServers],
      }),

      project("rest", Object.values(slow).flat()),
      project("rest-databases", onDatabaseServers),
      project("rest-simulation", manyHistories),
      project("rest-security", longProofs, { globalSetup: "test/security/global-setup.ts" }),
      project("rest-faults-sqlite", faultsOnSqlite, FAULTS),
      project("rest-faults", faultsOnRedis, FAULTS),
      project("rest-faults-postgres", faultsOnPostgres, FAULTS),
      project("rest-faults-mysql", faultsOnMysql, FAULTS),
    ],
  },
};
export default config;

function project(
  name: string,
  include: readonly string[],
  { exclude = [], ...options }: TestProjectInlineConfiguration["test"] = {},
): TestProjectInlineConfiguration {
  return {
    // Without `extends`: with it, Vitest would read this file again for each project, which takes most of a second.
    resolve: { conditions },
    ssr: { resolve: { conditions } },
    test: {
      name,
      include: [...include],
      exclude: ["**/node_modules/**", "**/test/browser/**", ...withoutServer, ...exclude],
      maxWorkers: WORKERS,
      // One module graph for all files of a worker: to load it for each of them takes as long as to run it.
      isolate: false,
      setupFiles: options.isolate === true ? [] : [LINKS_ARE_FOLLOWED],
      testTimeout: MAX_WAIT_MS,
      hookTimeout: MAX_WAIT_MS,
      expect: { poll: { timeout: MAX_WAIT_MS / 3 } },
      ...options,
    },
  };
}
