/** The time of the server process, by the file whose code runs, as the engine's sampling profiler sees it. */
import { existsSync, readFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector/promises";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";

/** Microseconds by place. */
export type Profile = Readonly<Record<string, number>>;

const NODE = "Node: HTTP, streams, timers, system calls";
const CRYPTO = "cryptography";
const ENGINE = "the engine, and the start and the end of its profiler";
const COLLECTOR = "garbage collection";
const FRAMEWORK = "the framework and the bench";

const SAMPLING_US = 100;
const CRYPTO_CALLS = /^(Hmac|Hash|Sign|Verify|update|digest|oneShotDigest|verifyOneShot|timingSafeEqual)$/i;

export class SamplingProfiler {
  readonly #session = new Session();
  readonly #maps = new Map<string, SourceMap | null>();

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post("Profiler.enable");
    await this.#session.post("Profiler.setSamplingInterval", { interval: SAMPLING_US });
    await this.#session.post("Profiler.start");
  }

  async stop(): Promise<Profile> {
    const { profile } = await this.#session.post("Profiler.stop");
    this.#session.disconnect();
    const { nodes, samples = [], timeDeltas = [] } = profile;
    const places = new Map(nodes.map(({ id, callFrame }) => [id, this.#placeOf(callFrame)]));
    const found: Record<string, number> = {};
    for (const [at, id] of samples.entries()) {
      const place = places.get(id);
      if (place != null) found[place] = (found[place] ?? 0) + (timeDeltas[at] ?? 0);
    }
    return found;
  }

  /** Null while nothing runs. */
  #placeOf({
    functionName,
    url,
    lineNumber,
    columnNumber,
  }: Profiler.ProfileNode["callFrame"]): string | null {
    if (functionName === "(idle)") return null;
    if (functionName === "(garbage collector)") return COLLECTOR;
    if (functionName === "(program)") return ENGINE;
    if (url.startsWith("node:internal/crypto") || (url === "" && CRYPTO_CALLS.test(functionName)))
      return CRYPTO;
    if (url === "" || url.startsWith("node:")) return NODE;
    if (!url.startsWith("file:")) return FRAMEWORK;
    const file = fileURLToPath(url);
    if (!/[\\/]packages[\\/]/.test(file)) return FRAMEWORK;
    return this.#sourceOf(file, lineNumber, columnNumber) ?? "Payhooks";
  }

  #sourceOf(file: string, line: number, column: number): string | undefined {
    let map = this.#maps.get(file);
    if (map === undefined) {
      const text = existsSync(`${file}.map`) ? readFileSync(`${file}.map`, "utf8") : null;
      map = text === null ? null : new SourceMap(JSON.parse(text));
      this.#maps.set(file, map);
    }
    const entry = map?.findEntry(line, column);
    return entry !== undefined && "originalSource" in entry
      ? entry.originalSource.replace(/^.*\/src\//, "")
      : undefined;
  }
}
