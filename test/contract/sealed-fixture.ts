import { randomBytes } from "node:crypto";
import { aesGcm } from "@payhooks/core/seal";
import type { InboxFixture } from "./inbox-processes.ts";

const key = { id: "contract", key: randomBytes(32) };

/** The same fixture, with a seal between each inbox and its store. */
export function sealedFixture(fixture: InboxFixture): InboxFixture {
  return {
    ...fixture,
    open() {
      const { store, ...parts } = fixture.open();
      return { ...parts, store: aesGcm([key]).wrap(store, fixture.clock) };
    },
  };
}
