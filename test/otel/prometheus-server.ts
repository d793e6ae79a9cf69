import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../faults/harness/receivers.ts";
import { type Scope, until } from "../faults/harness/scope.ts";
import { root } from "../package/workspace.ts";
import { freePort } from "../support/free-port.ts";
import { GuardedProgram } from "../support/guarded.ts";

/** The files that an operator copies. */
export const RECIPE: string = join(root, "examples/prometheus");

/** A sample of an answer: its labels, and its value. */
export interface FoundSample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [at: number, value: string];
}

/** A Prometheus of a test's own, which runs the recipe with other targets and without its waits. */
export class Prometheus {
  readonly #url: string;

  private constructor(url: string) {
    this.#url = url;
  }

  static async start(scope: Scope, targets: readonly string[]): Promise<Prometheus> {
    const folder = newFolder(scope);
    const recipe = readFileSync(join(RECIPE, "prometheus.yml"), "utf8");
    const written = recipe
      .replaceAll(/: 15s$/gm, ": 1s")
      .replace(/targets: .*/, `targets: ${JSON.stringify(targets)}`);
    writeFileSync(join(folder, "prometheus.yml"), written);
    copyFileSync(join(RECIPE, "alerts.yml"), join(folder, "alerts.yml"));
    const address = `127.0.0.1:${await freePort()}`;
    const program = await GuardedProgram.start(
      "prometheus",
      ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=${address}`],
      { cwd: folder },
    );
    scope.add(program, async (one) => {
      one.kill("SIGKILL");
      await one.exited;
    });
    const server = new Prometheus(`http://${address}`);
    await until("Prometheus is ready", async () => {
      if (!program.isRunning) throw new Error("Prometheus ended at its start");
      return fetch(`http://${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
    return server;
  }

  /** Evaluates an expression now. */
  async query(expression: string): Promise<readonly FoundSample[]> {
    const { result } = await this.#ask<{ result: readonly FoundSample[] }>(
      `query?query=${encodeURIComponent(expression)}`,
    );
    return result;
  }

  /** The alerts of the rules that were loaded, with what became of their evaluation. */
  async rules(): Promise<
    readonly { readonly name: string; readonly health: string; readonly query: string }[]
  > {
    const { groups } = await this.#ask<{
      groups: readonly { rules: readonly { name: string; health: string; query: string }[] }[];
    }>("rules");
    return groups.flatMap(({ rules }) => rules);
  }

  async #ask<T>(path: string): Promise<T> {
    const answer = (await (await fetch(`${this.#url}/api/v1/${path}`)).json()) as {
      status: string;
      error?: string;
      data: T;
    };
    if (answer.status !== "success") throw new Error(`Prometheus answers ${path}: ${answer.error}`);
    return answer.data;
  }
}

/** The complaints of Prometheus's own tool about a text of metrics; empty if there are none. */
export function lint(metrics: string): string {
  return execFileSync("promtool", ["check", "metrics"], { input: metrics, encoding: "utf8" });
}

/** What the rules of the recipe do, in a time that is not waited for. */
export interface RuleTest {
  /** By series: its values as promtool writes them, such as `_x5 1x10`, at one scrape a minute. */
  readonly series: Readonly<Record<string, string>>;
  /** By minute: the labels of the alerts that fire then, besides their severity. */
  readonly firing: Readonly<Record<number, readonly Readonly<Record<string, string>>[]>>;
}

/** The differences that Prometheus's own tool finds; empty if the rule does what is expected. */
export function differences(scope: Scope, alert: string, { series, firing }: RuleTest): string {
  const folder = newFolder(scope);
  const rules = readFileSync(join(RECIPE, "alerts.yml"), "utf8");
  // The texts for people are not compared.
  writeFileSync(join(folder, "alerts.yml"), rules.replaceAll(/ +annotations:\n +summary: .*\n/g, ""));
  const [, severity] = new RegExp(`alert: ${alert}\\n[^]*?severity: (\\w+)`).exec(rules) ?? [];
  const test = {
    interval: "1m",
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: Object.entries(firing).map(([minute, alerts]) => ({
      eval_time: `${minute}m`,
      alertname: alert,
      exp_alerts: alerts.map((labels) => ({ exp_labels: { severity, ...labels } })),
    })),
  };
  // JSON is YAML.
  writeFileSync(
    join(folder, "test.yml"),
    JSON.stringify({ rule_files: ["alerts.yml"], evaluation_interval: "1m", tests: [test] }),
  );
  const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", "test.yml"], {
    cwd: folder,
    encoding: "utf8",
  });
  return status === 0 ? "" : stdout + stderr;
}
