/** Loaded before a process under test: its clock is wrong from the first line on. */
const shiftMs = Number(process.env.PAYHOOKS_SHIFT_MS);
const RealDate = Date;

class ShiftedDate extends RealDate {
  constructor(...args: readonly unknown[]) {
    if (args.length === 0) super(RealDate.now() + shiftMs);
    else super(...(args as [number]));
  }

  static override now(): number {
    return RealDate.now() + shiftMs;
  }
}

globalThis.Date = ShiftedDate as DateConstructor;

export {};
