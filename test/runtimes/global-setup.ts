/** Once, before any test begins: two workers that install would be in each other's way. */
export { installRuntimes as setup } from "./install.ts";
