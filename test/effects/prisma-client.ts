import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { PrismaDatabase, PrismaQueries } from "@payhooks/core/effects/postgres";
import { PrismaPg } from "@prisma/adapter-pg";

/** The part of a generated client that the tests use. */
export interface GeneratedClient extends PrismaDatabase<PrismaQueries> {
  $disconnect(): Promise<void>;
}

const SCHEMA = `
generator client {
  provider = "prisma-client"
  output   = "./client"
}
datasource db {
  provider = "postgresql"
}
model Order {
  reference String @id
  paid      Int    @default(0)
  @@map("orders")
}
`;

let generating: Promise<string> | null = null;

/** Generates a client, as a merchant does, and returns its module. */
async function generate(): Promise<string> {
  const folder = join(dirname(fileURLToPath(import.meta.url)), ".prisma");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "schema.prisma"), SCHEMA);
  const manifest = createRequire(import.meta.url).resolve("prisma/package.json");
  const program = join(dirname(manifest), "build", "index.js");
  const args = [program, "generate", "--schema", join(folder, "schema.prisma")];
  // The generator asks for an engine that it does not use, and would download it.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1" };
  await promisify(execFile)(process.execPath, args, { cwd: folder, env });
  return pathToFileURL(join(folder, "client", "client.ts")).href;
}

/** A Prisma client on a database. */
export async function prismaClient(connectionString: string, max: number): Promise<GeneratedClient> {
  generating ??= generate();
  const { PrismaClient } = (await import(/* @vite-ignore */ await generating)) as {
    readonly PrismaClient: new (options: { readonly adapter: PrismaPg }) => GeneratedClient;
  };
  return new PrismaClient({ adapter: new PrismaPg({ connectionString, max }) });
}
