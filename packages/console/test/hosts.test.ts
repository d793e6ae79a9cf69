import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { FOREIGN_HOSTS, OWN_HOSTS, rawRequest } from "../../../test/support/raw-request.ts";
import { payhooksConsole as onFastify } from "../src/fastify.ts";
import { payhooksConsole as onFetch } from "../src/index.ts";
import { consoleFixture, heldId } from "./support/console-fixture.ts";
import { MOUNTS } from "./support/mounts.ts";

const PATH = "/admin/payhooks";

/** A text that is no host at all is refused by the server below the console, sometimes with 500. */
const REFUSED: number[] = [400, 421, 500];

/** A receiver with one held event, and a console that lets everybody in. */
async function held(on: string, allowedHosts: readonly string[] = []) {
  const fixture = await consoleFixture();
  fixture.words = "the bank is away";
  await fixture.callback({ referenceId: "order-7" });
  const { url } = await fixture.open({ on, allowedHosts });
  return { ...fixture, url, eventId: await heldId(fixture.receiver) };
}

const get = (url: string, host: string, query = "") =>
  rawRequest(url, [`GET ${PATH}${query} HTTP/1.1`, `Host: ${host}`]);

describe.each(Object.keys(MOUNTS))(
  "a page of another site whose name was made to point here, on %s",
  (on) => {
    it("learns nothing, whatever it asks for, and decides nothing", async () => {
      const { url, eventId, receiver } = await held(on);
      const ask = `{"action":"preview","decision":"replay","eventIds":["${eventId}"]}`;
      for (const query of ["", `?event=${eventId}`, "?part=regions", "?stream=1", "?asset=console.js"]) {
        const { status, text } = await get(url, "evil.example:3000", query);
        expect([query, status, text]).toEqual([query, 421, expect.not.stringContaining("order-7")]);
      }
      expect((await get(url, "evil.example", "?asset=console.css")).status).toBe(421);
      for (const body of [ask, `{"action":"discard","eventId":"${eventId}","note":"bye"}`]) {
        const { status, text } = await rawRequest(
          url,
          [
            `POST ${PATH} HTTP/1.1`,
            "Host: evil.example:3000",
            "Origin: http://evil.example:3000",
            "Sec-Fetch-Site: same-origin",
            "X-Payhooks-Console: 1",
            "Content-Type: application/json",
            `Content-Length: ${body.length}`,
          ],
          body,
        );
        expect([status, text]).toEqual([421, expect.not.stringContaining("order-7")]);
      }
      expect((await receiver.events.get(eventId))?.state).toBe("held");
    });

    it("is distinguished from this machine, however the name is written", async () => {
      const { url } = await held(on);
      for (const host of OWN_HOSTS) expect([host, (await get(url, host)).status]).toEqual([host, 200]);
      for (const host of FOREIGN_HOSTS) {
        const { status, text } = await get(url, host);
        expect([host, status, text]).toEqual([
          host,
          expect.toBeOneOf(REFUSED),
          expect.not.stringContaining("order-7"),
        ]);
      }
    });

    it("does not pass for this machine by another field, or by another form of the request", async () => {
      const { url } = await held(on);
      const forwarded = ["X-Forwarded-Host: localhost", "Forwarded: host=localhost", "X-Host: localhost"];
      const answers = [
        await rawRequest(url, [`GET ${PATH} HTTP/1.1`, "Host: evil.example", ...forwarded]),
        await rawRequest(url, [`GET http://localhost${PATH} HTTP/1.1`, "Host: evil.example"]),
      ];
      for (const { status, text } of answers) {
        expect([status, text]).toEqual([421, expect.not.stringContaining("order-7")]);
      }
      const nameless = await rawRequest(url, [`GET ${PATH} HTTP/1.0`]);
      expect([nameless.status, nameless.text]).toEqual([
        expect.toBeOneOf(REFUSED),
        expect.not.stringContaining("order-7"),
      ]);
    });

    it("is not the console's own name, which one option allows", async () => {
      const { url } = await held(on, ["Admin.Shop.example:8443", "[2001:db8::1]", "bücher.example"]);
      for (const host of [
        "admin.shop.example",
        "ADMIN.SHOP.example:443",
        "admin.shop.example.",
        "localhost",
      ]) {
        expect([host, (await get(url, host)).status]).toEqual([host, 200]);
      }
      expect((await get(url, "[2001:db8::1]:8080")).status).toBe(200);
      expect((await get(url, "xn--bcher-kva.example")).status).toBe(200);
      for (const host of ["shop.example", "x.admin.shop.example", "evil.example"]) {
        expect([host, (await get(url, host)).status]).toEqual([host, 421]);
      }
    });
  },
);

describe("a request under another name", () => {
  it("is told how to allow it", async () => {
    const { url } = await held("Express");
    const { text } = await get(url, "Payments.internal:3000");
    expect(text).toContain("does not answer under the host name payments.internal.");
    expect(text).toContain("allowedHosts: [&quot;payments.internal&quot;]");
    expect(text).toContain("let your proxy pass the Host header on");
  });

  it("cannot write anything but a name into that answer", async () => {
    const { url } = await held("fetch");
    for (const host of [`"><script>alert(1)</script>`, "a\u202eb", `${"x".repeat(4_000)}.example`]) {
      const { text } = await get(url, host);
      expect(text).not.toMatch(/<script|\u202e|x{300}/);
    }
  });

  it("is refused in an absolute request line as well, where Node's own server passes it on", async () => {
    for (const on of ["Express", "Express 4", "Fastify"]) {
      const { url } = await held(on);
      const { status } = await rawRequest(url, [
        `GET http://evil.example${PATH} HTTP/1.1`,
        "Host: localhost",
      ]);
      expect([on, status]).toEqual([on, expect.toBeOneOf([404, 421])]);
      const own = await rawRequest(url, [`GET ${url} HTTP/1.1`, "Host: localhost"]);
      expect([on, own.status]).toEqual([on, expect.toBeOneOf([200, 404])]);
    }
  });

  it("is refused over HTTP/2 by its authority", async () => {
    const fixture = await consoleFixture();
    const app = fastify({ http2: true });
    app.register(onFastify(fixture.receiver, { authorize: () => ({ by: "marta", can: ["view"] }) }), {
      prefix: PATH,
    });
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    const session = connectHttp2(url);
    onTestFinished(async () => {
      session.close();
      await app.close();
    });
    const status = async (headers: Readonly<Record<string, string>>) => {
      const stream = session.request({ ":path": PATH, ...headers });
      const [answer] = (await once(stream, "response")) as [{ ":status": number }];
      stream.close();
      return answer[":status"];
    };
    expect(await status({})).toBe(200);
    expect(await status({ ":authority": "localhost:3000" })).toBe(200);
    expect(await status({ ":authority": "evil.example" })).toBe(421);
    expect(await status({ ":authority": "localhost", host: "evil.example" })).toBe(421);
  });

  it("is known by its address where a runtime gives no Host header", async () => {
    const { receiver } = await consoleFixture();
    const handler = onFetch(receiver, { authorize: () => ({ by: "marta", can: ["view"] }) });
    expect((await handler(new Request("http://localhost/payhooks"))).status).toBe(200);
    expect((await handler(new Request("http://evil.example/payhooks"))).status).toBe(421);
    // Next.js and SvelteKit may make the address of their own configuration: the header says what was sent.
    const behind = new Request("http://0.0.0.0:3000/payhooks", { headers: { host: "localhost" } });
    expect((await handler(behind)).status).toBe(200);
    const evil = new Request("http://localhost:3000/payhooks", { headers: { host: "evil.example" } });
    expect((await handler(evil)).status).toBe(421);
  });
});
