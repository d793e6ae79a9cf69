/**
 * Loads CommonJS packages that need others, before any test of a process runs. Now and then a process that had run many files no
 * longer found what such a package needs, if it loaded the package late ("Cannot find module 'depd'"). Why is not known.
 */
import "express";
import "express4";
import "fastify";
import "ioredis";
import "mysql2/promise";
import "pg";
import "../../packages/express/src/index.ts";
