/** `@payhooks/core/fetch` on Node, behind the smallest bridge. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { announce, secrets } from "./environment.ts";
import { fetchApp } from "./fetch-app.ts";
import { viaFetch } from "./node-bridge.ts";

const env = secrets();
const server = createServer(viaFetch((request) => fetchApp(request, env)));
server.listen(0, "127.0.0.1", () => announce((server.address() as AddressInfo).port));
