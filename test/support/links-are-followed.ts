/**
 * Packages are found again after a test that has deleted a folder with a socket in it, as MariaDB's is.
 *
 * Node.js 20 does not follow symbolic links as it resolves an import if the last file that `fs` has looked at, anywhere in the process,
 * was a socket or a pipe. What pnpm has linked then does not find its own dependencies ("Cannot find package 'reflect-metadata'"). So
 * each file of tests begins with a look at an ordinary file.
 */
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";

statSync(fileURLToPath(import.meta.url));
