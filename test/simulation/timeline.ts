/** The owner of a task. The task is not run after its owner has died, and waits while its owner is frozen. */
export interface Owner {
  readonly isAlive: boolean;
  /** In true time. It is in the past unless the owner is frozen. */
  readonly frozenUntil: number;
}

interface Task {
  readonly at: number;
  /** Of tasks of one time, the task that was set first runs first. */
  readonly order: number;
  readonly owner: Owner | null;
  run: (() => void) | null;
}

/**
 * True time, and everything that is going to happen. Time moves on only when all microtasks and the work of the next turn of the event loop
 * are done. So a history is the same each time, even on a busy machine.
 */
export class Timeline {
  #now = 0;
  #orders = 0;
  readonly #heap: Task[] = [];
  #nextTurn: { readonly owner: Owner; readonly run: () => void }[] = [];

  /** In milliseconds since the history began. */
  get now(): number {
    return this.#now;
  }

  /** Lets time pass in which nothing happens. Tasks of that time run afterwards. */
  pass(ms: number): void {
    this.#now += ms;
  }

  /** Runs a task at a time; the returned function cancels it. */
  at(time: number, owner: Owner | null, run: () => void): () => void {
    const task: Task = { at: Math.max(time, this.#now), order: this.#orders++, owner, run };
    push(this.#heap, task);
    return () => {
      task.run = null;
    };
  }

  /** Runs a task after what runs now, before any other. */
  nextTurn(owner: Owner, run: () => void): void {
    this.#nextTurn.push({ owner, run });
  }

  /** Runs tasks until `isOver`. False: no task was left, or `limit` was reached before. */
  async play(isOver: () => boolean, limit: number): Promise<boolean> {
    for (;;) {
      await microtasks();
      if (this.#nextTurn.length > 0) {
        const batch = this.#nextTurn;
        this.#nextTurn = [];
        for (const { owner, run } of batch) {
          if (!owner.isAlive) continue;
          if (owner.frozenUntil > this.#now) this.at(owner.frozenUntil, owner, run);
          else {
            run();
            await microtasks();
          }
        }
        continue;
      }
      if (isOver()) return true;
      if (!this.#next(limit)) return false;
    }
  }

  #next(limit: number): boolean {
    for (;;) {
      const task = pop(this.#heap);
      if (task === undefined) return false;
      if (task.at > limit) {
        push(this.#heap, task);
        return false;
      }
      const { owner, run } = task;
      if (run === null || owner?.isAlive === false) continue;
      if (owner !== null && owner.frozenUntil > task.at) {
        // The order stays the same: the new task takes the place of the old task.
        push(this.#heap, {
          at: owner.frozenUntil,
          order: task.order,
          owner,
          get run() {
            return task.run;
          },
        });
        continue;
      }
      this.#now = Math.max(this.#now, task.at);
      run();
      return true;
    }
  }
}

/** Immediates that are set at a time. */
const BATCH = 64;
let pending = 0;
let goOn: (() => void) | null = null;

/**
 * Resolves when all promises are through. Node settles them between two immediates. Those are set in batches, since a turn of the
 * event loop for each would cost a system call.
 */
function microtasks(): Promise<void> {
  return new Promise((resolve) => {
    goOn = resolve;
    if (pending > 0) return;
    for (; pending < BATCH; pending++) setImmediate(next);
  });
}

function next(): void {
  pending--;
  const resolve = goOn;
  goOn = null;
  resolve?.();
}

function isBefore(a: Task, b: Task): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Task[], task: Task): void {
  let at = heap.length;
  heap.push(task);
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(task, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = task;
}

function pop(heap: Task[]): Task | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (first === undefined || last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    let child = heap[below];
    const right = heap[below + 1];
    if (child === undefined) break;
    if (right !== undefined && isBefore(right, child)) {
      child = right;
      below++;
    }
    if (!isBefore(child, last)) break;
    heap[at] = child;
    at = below;
  }
  heap[at] = last;
  return first;
}
