/** Projects with packages that the workspace has no need of. They are built and run as their frameworks say. */
import { ESM, NESTJS, type Starter, TYPED } from "./starters.ts";

/** How a project is built, and how its server is started. */
export interface App extends Starter {
  /** Programs of its own packages, with their arguments. */
  readonly builds: readonly (readonly [tool: string, ...args: readonly string[]])[];
  /** What Node runs. */
  readonly runs: string;
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
    listening: /listening .*port: (\d+)/,
    mounts: ["payments", "connect"],
  };
}

export const APPS: readonly App[] = [
  nestjs("10.4.22"),
  nestjs("11.2.10"),
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
    runs: "build",
    listening: /Listening on http:\/\/127\.0\.0\.1:(\d+)/,
    mounts: ["payments"],
  },
];
