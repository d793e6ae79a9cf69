/** Express 4 under its alias: to the adapter, and so to these tests, it has the types of Express 5. */
declare module "express4" {
  import express from "express";
  export = express;
}
