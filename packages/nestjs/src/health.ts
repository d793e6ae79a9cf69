import type { ReadyOptions } from "@payhooks/core";
import type { AnyReceiver } from "@payhooks/core/adapter";

/** The result of a health check, as Terminus takes it. */
export type HealthResult<Key extends string = string> = Readonly<
  Record<Key, { readonly status: "up" | "down"; readonly code?: string }>
>;

/**
 * A health indicator for Terminus 11 and later, and for other programs that take its results. Provided for the receiver
 * named `"default"`; make one for another receiver.
 *
 * @example health.check([() => payhooks.isHealthy("payhooks", { maxDueAgeMs: 60_000 })])
 */
export class PayhooksHealthIndicator {
  readonly #receiver: AnyReceiver;

  constructor(receiver: AnyReceiver) {
    this.#receiver = receiver;
  }

  /** Up while deliveries should be sent here, as `receiver.ready` says. If it is down, `code` says why. */
  async isHealthy<const Key extends string>(
    key: Key,
    options: ReadyOptions = {},
  ): Promise<HealthResult<Key>> {
    const { ok, code } = await this.#receiver.ready(options);
    const result = ok ? { status: "up" } : { status: "down", code };
    return { [key]: result } as HealthResult<Key>;
  }
}
