import type { PlannedEvent } from "./plan.ts";
import type { SimulatedProcess } from "./process.ts";
import type { World } from "./world.ts";

/** How long the service waits for an answer. */
const TIMEOUT_MS = 5_000;
const RESEND_MIN_MS = 200;
const RESEND_MAX_MS = 3_000;
/** By how much a late delivery or answer is late. */
const LATE_MS = 1_500;

/** The service: it sends each event until it is answered 2xx, and now and then once more after that. */
export class Sender {
  readonly #world: World;
  readonly #processes: () => readonly SimulatedProcess[];
  readonly #acknowledged = new Set<number>();
  #begun: readonly PlannedEvent[] = [];

  constructor(world: World, processes: () => readonly SimulatedProcess[]) {
    this.#world = world;
    this.#processes = processes;
  }

  get unacknowledged(): readonly PlannedEvent[] {
    return this.#world.plan.events.filter(({ number }) => !this.#acknowledged.has(number));
  }

  /** Every event of the periods that have begun was answered 2xx. */
  get isThrough(): boolean {
    return this.#acknowledged.size === this.#begun.length;
  }

  /** Begins a period, now. */
  begin(period: number): void {
    const { plan, dice, timeline } = this.#world;
    const { now } = timeline;
    const events = plan.events.filter((event) => event.period === period);
    this.#begun = [...this.#begun, ...events];
    for (const event of events) {
      timeline.at(now + event.sentAt, null, () => this.#attempt(event, 0));
      if (!dice.chance(0.25, "copy", event.number)) continue;
      const copyAt = now + event.sentAt + dice.between(0, 2_000, "copied at", event.number);
      timeline.at(copyAt, null, () => this.#send(event, 100, () => {}));
    }
  }

  /** Sends a copy of everything, as if the service replayed its log. */
  sendAllAgain(): void {
    for (const event of this.#world.plan.events) this.#send(event, 200, () => {});
  }

  #attempt(event: PlannedEvent, attempt: number): void {
    const { timeline, dice } = this.#world;
    let isOver = false;
    const again = (): void => {
      if (isOver) return;
      isOver = true;
      const delayMs = Math.min(RESEND_MIN_MS * 2 ** attempt, RESEND_MAX_MS);
      const jitter = dice.between(0.5, 1.5, "again", event.number, attempt);
      timeline.at(timeline.now + delayMs * jitter, null, () => this.#attempt(event, attempt + 1));
    };
    timeline.at(timeline.now + TIMEOUT_MS, null, again);
    this.#send(event, attempt, (status) => {
      if (status === null || status < 200 || status > 299) {
        again();
        return;
      }
      isOver = true;
      this.#acknowledged.add(event.number);
    });
  }

  /** `answered` gets the status; null if there was no connection. */
  #send(event: PlannedEvent, attempt: number, answered: (status: number | null) => void): void {
    const { timeline, dice, chronicle } = this.#world;
    const processes = this.#processes();
    const burst = dice.chance(0.5, "together", event.number, attempt)
      ? Math.floor(event.sentAt)
      : event.number;
    const to = processes[dice.whole(0, processes.length - 1, "to", burst, attempt)];
    if (to === undefined || !to.isAlive) {
      answered(null);
      return;
    }
    const callFault = this.#world.meet("request", "before", to);
    // Half of them take the same time on their way, so that deliveries that are sent together arrive together.
    const isQuick = dice.chance(0.5, "quick", event.number, attempt);
    const usual = isQuick ? 1 : dice.between(0.5, 20, "request", event.number, attempt);
    const way = usual + (callFault === "late" ? LATE_MS : 0);
    if (callFault === "not-made") return;
    const deliver = (onAnswer: typeof answered): void => {
      timeline.at(timeline.now + way, to, () => {
        chronicle.log(timeline.now, to.name, () => `is sent event ${event.number}: ${titleOf(event)}`);
        const answer = to.receive(event);
        this.#world.meet("request", "after", to);
        void answer.then((status) => {
          if (!to.isAlive) return;
          const lost = this.#world.meet("answer", "before", to);
          const back = dice.between(0.5, 20, "answer", event.number, attempt);
          const lateBy = lost === "late" ? TIMEOUT_MS + LATE_MS : 0;
          if (lost !== "answer-lost") timeline.at(timeline.now + back + lateBy, null, () => onAnswer(status));
          if (to.isAlive) this.#world.meet("answer", "after", to);
        });
      });
    };
    deliver(answered);
    if (callFault === "twice") deliver(() => {});
  }
}

function titleOf({ name, id, status, variant, reference }: PlannedEvent): string {
  const shared = reference === id ? "" : ` for order ${reference}`;
  return `${name} ${id}${status === "" ? "" : ` ${status}`}${shared}${variant === 0 ? "" : `, other facts`}`;
}
