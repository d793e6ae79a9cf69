/** New projects as each framework's own starter lays them out, and where the documentation's code goes in them. */
import { readDocument } from "../docs/markdown.ts";

/** A project before anything is installed. */
export interface Starter {
  readonly name: string;
  /** The document that is followed, to the letter. */
  readonly document: string;
  /** The file for each piece of the document's code, by its place among the document's TypeScript. */
  readonly files: Readonly<Record<string, number>>;
  readonly manifest: Readonly<Record<string, unknown>>;
  /** Packages that the starter itself brings, at the workspace's version where none is named. */
  readonly brings: readonly string[];
  /** Its further files. */
  readonly own: Readonly<Record<string, unknown>>;
}

/** The options that `tsc --init` writes, or a framework's own, without those that change nothing here. */
export const STRICT: Readonly<Record<string, unknown>> = {
  target: "esnext",
  module: "nodenext",
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  moduleDetection: "force",
  skipLibCheck: true,
};
export const ESM: Readonly<Record<string, string>> = { type: "module" };
export const TYPED: readonly string[] = ["typescript", "@types/node"];

/** A project that `tsc` builds, where there is a tsconfig.json, and whose `runs` Node runs. */
export type ServerStarter = Starter & { readonly runs: string };

export const NESTJS: ServerStarter = {
  name: "nestjs",
  document: "packages/nestjs/README.md",
  files: { "src/main.ts": 0 },
  manifest: ESM,
  brings: TYPED,
  own: {
    "tsconfig.json": {
      compilerOptions: {
        module: "nodenext",
        target: "ES2023",
        emitDecoratorMetadata: true,
        experimentalDecorators: true,
        isolatedModules: true,
        resolvePackageJsonExports: true,
        esModuleInterop: true,
        skipLibCheck: true,
        strictNullChecks: true,
        types: ["node"],
        outDir: "dist",
      },
      include: ["src"],
    },
  },
  runs: "dist/main.js",
};

export const SERVERS: readonly ServerStarter[] = [
  {
    name: "express",
    document: "packages/express/README.md",
    files: { "app.js": 0 },
    manifest: ESM,
    brings: ["express"],
    own: {},
    runs: "app.js",
  },
  {
    name: "express-typescript",
    document: "packages/express/README.md",
    files: { "src/index.ts": 0 },
    manifest: ESM,
    brings: ["express", "@types/express", ...TYPED],
    own: { "tsconfig.json": { compilerOptions: { ...STRICT, types: ["node"], outDir: "dist" } } },
    runs: "dist/index.js",
  },
  {
    name: "hono",
    document: "packages/hono/README.md",
    files: { "src/index.ts": 0 },
    manifest: ESM,
    brings: ["hono", "@hono/node-server", ...TYPED],
    own: {
      "tsconfig.json": {
        compilerOptions: {
          target: "ESNext",
          module: "NodeNext",
          strict: true,
          verbatimModuleSyntax: true,
          skipLibCheck: true,
          types: ["node"],
          jsx: "react-jsx",
          jsxImportSource: "hono/jsx",
          outDir: "dist",
        },
        include: ["src"],
      },
    },
    runs: "dist/index.js",
  },
  {
    name: "fastify",
    document: "packages/fastify/README.md",
    files: { "src/server.ts": 0 },
    manifest: ESM,
    brings: ["fastify", ...TYPED],
    own: {
      "tsconfig.json": {
        compilerOptions: {
          outDir: "dist",
          sourceMap: true,
          target: "esnext",
          module: "nodenext",
          allowImportingTsExtensions: true,
          rewriteRelativeImportExtensions: true,
          verbatimModuleSyntax: true,
          erasableSyntaxOnly: true,
        },
        include: ["src/**/*.ts"],
      },
    },
    runs: "dist/server.js",
  },
  NESTJS,
];

const BUNDLED = {
  target: "es2022",
  lib: ["es2022", "dom"],
  module: "esnext",
  moduleResolution: "bundler",
  types: ["node"],
  strict: true,
  isolatedModules: true,
  skipLibCheck: true,
  outDir: "dist",
};

/** Modules that a bundler makes a server of: here they are compiled, and called with requests from a socket. */
export const HANDLERS: readonly (Starter & { readonly runs: string; readonly mounts: readonly string[] })[] =
  [
    {
      name: "worker-in-memory",
      document: "docs/start/workers.md",
      files: { "src/index.ts": 1 },
      manifest: ESM,
      brings: TYPED,
      own: { "tsconfig.json": { compilerOptions: BUNDLED, include: ["src"] } },
      runs: "dist/index.js",
      mounts: ["payments", "connect"],
    },
    {
      name: "sveltekit",
      document: "docs/start/sveltekit.md",
      files: { "src/routes/callbacks/pay/+server.ts": 0 },
      manifest: ESM,
      brings: TYPED,
      own: { "tsconfig.json": { compilerOptions: { ...BUNDLED, rootDir: "src" }, include: ["src"] } },
      runs: "dist/routes/callbacks/pay/+server.js",
      mounts: ["payments"],
    },
  ];

/** Functions that only their platform calls, beside a queue or a store of its own. Here they are compiled. */
export const FUNCTIONS: readonly Starter[] = [
  {
    name: "worker",
    document: "docs/start/workers.md",
    files: { "src/index.ts": 0 },
    manifest: ESM,
    brings: TYPED,
    own: { "tsconfig.json": { compilerOptions: BUNDLED, include: ["src"] } },
  },
  {
    name: "lambda",
    document: "packages/lambda/README.md",
    files: { "src/index.ts": 0 },
    manifest: ESM,
    brings: TYPED,
    own: { "tsconfig.json": { compilerOptions: { ...STRICT, types: ["node"], outDir: "dist" } } },
  },
];

/** As create-next-app lays it out: `app/` and its configuration in the project's folder. */
export const NEXT_APP: Starter = {
  name: "next",
  document: "packages/next/README.md",
  files: {
    "lib/receiver.ts": 0,
    "app/callbacks/pay/route.ts": 1,
    "app/webhooks/connect/route.ts": 2,
    "app/api/work/route.ts": 3,
  },
  manifest: {},
  brings: ["next", "react", "react-dom", "@types/react", ...TYPED],
  own: {
    "next.config.ts":
      'import type { NextConfig } from "next";\n\nconst nextConfig: NextConfig = {};\n\nexport default nextConfig;\n',
    "app/layout.tsx":
      'export default function RootLayout({ children }: Readonly<{ children: React.ReactNode }>) {\n  return <html lang="en"><body>{children}</body></html>;\n}\n',
    "app/page.tsx": "export default function Page() {\n  return <h1>Hello world!</h1>;\n}\n",
    "tsconfig.json": {
      compilerOptions: {
        target: "ES2017",
        lib: ["dom", "dom.iterable", "esnext"],
        allowJs: true,
        skipLibCheck: true,
        strict: true,
        noEmit: true,
        esModuleInterop: true,
        module: "esnext",
        moduleResolution: "bundler",
        resolveJsonModule: true,
        isolatedModules: true,
        jsx: "react-jsx",
        incremental: true,
        plugins: [{ name: "next" }],
        paths: { "@/*": ["./*"] },
      },
      include: [
        "next-env.d.ts",
        "**/*.ts",
        "**/*.tsx",
        ".next/types/**/*.ts",
        ".next/dev/types/**/*.ts",
        "**/*.mts",
      ],
      exclude: ["node_modules"],
    },
  },
};

/** The starter's addition with handlers in the background. */
export const NEXT_BACKGROUND: Pick<Starter, "document" | "files"> = {
  document: "docs/start/frameworks.md",
  files: { "instrumentation.ts": 0 },
};

/** The TypeScript of a document, block by block. */
export function codeOf(document: string): readonly string[] {
  return readDocument(document).blocks.flatMap(({ language, text }) => (language === "ts" ? [text] : []));
}

/** The packages that a document tells its reader to install. */
export function installsOf(document: string): readonly string[] {
  const lines = readDocument(document).blocks.flatMap(({ language, text }) =>
    language === "sh" ? text.split("\n") : [],
  );
  return lines.flatMap((line) => /^(?:npm install|bun add) (.+)$/.exec(line)?.[1]?.split(" ") ?? []);
}
