/** Projects with packages that the workspace has no need of. They are built and run as their frameworks say. */
import { ESM, NESTJS, STRICT, type Starter, TYPED } from "./starters.ts";

/** How a project is built, and how its server is started. */
export interface App extends Starter {
  /** Programs of its own packages, with their arguments. */
  readonly builds: readonly (readonly [tool: string, ...args: readonly string[]])[];
  readonly runtime: "node" | "bun";
  /** The program for the runtime, with its arguments. */
  readonly runs: readonly string[];
  /** The port in what the server prints. */
  readonly listening: RegExp;
  readonly mounts: readonly string[];
}

/** The documentation's program with an older NestJS. */
function nestjs(version: string): App {
  const packages = ["common", "core", "platform-express"].map((name) => `@nestjs/${name}@${version}`);
  return {
    ...NESTJS,
    name: `nestjs-${version}`,
    brings: [...NESTJS.brings, ...packages],
    builds: [["tsc"]],
    runtime: "node",
    runs: [NESTJS.runs],
    listening: /listening .*port: (\d+)/,
    mounts: ["payments", "connect"],
  };
}

/** A program of one file, `src/index.ts`, that takes both flows. */
function program(name: string, document: string, brings: readonly string[]): App {
  const compilerOptions = { ...STRICT, types: ["node"], outDir: "dist" };
  return {
    name,
    document,
    files: { "src/index.ts": 0 },
    manifest: ESM,
    brings: [...brings, ...TYPED],
    own: { "tsconfig.json": { compilerOptions, include: ["src"] } },
    builds: [["tsc"]],
    runtime: "node",
    runs: ["dist/index.js"],
    listening: /listening .*(?:port: |:)(\d+)/,
    mounts: ["payments", "connect"],
  };
}

/** Those that import packages which the tests of the documentation do not have at hand. */
export const PROGRAMS: readonly App[] = [
  program("koa", "docs/start/koa.md", ["koa@3.3.0", "@types/koa@3.0.3"]),
  program("h3", "docs/start/h3.md", ["h3@2.0.8"]),
  program("trpc", "docs/start/trpc.md", ["@trpc/server@11.25.2", "@types/express"]),
  {
    ...program("elysia", "docs/start/elysia.md", [
      "elysia@1.4.30",
      "@sinclair/typebox@0.34.52",
      "openapi-types@12.1.3",
    ]),
    runtime: "bun",
    runs: ["src/index.ts"],
  },
  {
    name: "nitro",
    document: "docs/start/nitro.md",
    files: { "routes/callbacks/pay.ts": 0 },
    manifest: ESM,
    brings: ["nitropack@2.13.6", "h3@1.15.11", ...TYPED],
    own: {
      "nitro.config.ts":
        'import { defineNitroConfig } from "nitropack/config";\n\nexport default defineNitroConfig({ compatibilityDate: "2026-11-01" });\n',
      "tsconfig.json": { extends: "./.nitro/types/tsconfig.json" },
    },
    builds: [
      ["nitropack", "prepare"],
      ["tsc", "--noEmit"],
      ["nitropack", "build"],
    ],
    runtime: "node",
    runs: [".output/server/index.mjs"],
    listening: /Listening on http:\/\/127\.0\.0\.1:(\d+)/,
    mounts: ["payments"],
  },
];

export const APPS: readonly App[] = [
  nestjs("10.4.22"),
  nestjs("11.2.10"),
  ...PROGRAMS,
  {
    name: "react-router",
    document: "docs/start/react-router.md",
    files: { "app/routes/callbacks.pay.ts": 0 },
    manifest: ESM,
    brings: [
      "@react-router/dev@7.18.4",
      "@react-router/node@7.18.4",
      "@react-router/serve@7.18.4",
      "isbot@5.2.3",
      "react-router@7.18.4",
      "react",
      "react-dom",
      "vite@7.3.8",
      "@types/react",
      ...TYPED,
    ],
    own: {
      "app/routes.ts":
        'import { type RouteConfig, route } from "@react-router/dev/routes";\n\nexport default [route("callbacks/pay", "routes/callbacks.pay.ts")] satisfies RouteConfig;\n',
      "app/root.tsx":
        'import { Outlet, Scripts } from "react-router";\n\nexport default function Root() {\n  return <html lang="en"><body><Outlet /><Scripts /></body></html>;\n}\n',
      "vite.config.ts":
        'import { reactRouter } from "@react-router/dev/vite";\nimport { defineConfig } from "vite";\n\nexport default defineConfig({ plugins: [reactRouter()] });\n',
      "tsconfig.json": {
        compilerOptions: {
          ...STRICT,
          lib: ["dom", "dom.iterable", "esnext"],
          module: "esnext",
          moduleResolution: "bundler",
          jsx: "react-jsx",
          types: ["node", "vite/client"],
          noEmit: true,
        },
        include: ["app"],
      },
    },
    builds: [["react-router", "build"], ["tsc"]],
    runtime: "node",
    runs: ["node_modules/@react-router/serve/bin.js", "build/server/index.js"],
    listening: /http:\/\/[^:]+:(\d+)/,
    mounts: ["payments"],
  },
  {
    name: "sveltekit-app",
    document: "docs/start/sveltekit.md",
    files: { "src/routes/callbacks/pay/+server.ts": 0 },
    manifest: ESM,
    brings: [
      "@sveltejs/adapter-node@5.5.7",
      "@sveltejs/kit@2.70.4",
      "@sveltejs/vite-plugin-svelte@6.2.4",
      "svelte@5.57.3",
      "vite@7.3.8",
      ...TYPED,
    ],
    own: {
      "svelte.config.js":
        'import adapter from "@sveltejs/adapter-node";\n\nexport default { kit: { adapter: adapter() } };\n',
      "vite.config.ts":
        'import { sveltekit } from "@sveltejs/kit/vite";\nimport { defineConfig } from "vite";\n\nexport default defineConfig({ plugins: [sveltekit()] });\n',
      "tsconfig.json": {
        extends: "./.svelte-kit/tsconfig.json",
        compilerOptions: { strict: true, skipLibCheck: true },
      },
      "src/app.html":
        '<!doctype html>\n<html lang="en">\n<head>%sveltekit.head%</head>\n<body>%sveltekit.body%</body>\n</html>\n',
    },
    builds: [
      ["vite", "build"],
      ["tsc", "--noEmit"],
    ],
    runtime: "node",
    runs: ["build"],
    listening: /Listening on http:\/\/127\.0\.0\.1:(\d+)/,
    mounts: ["payments"],
  },
];
