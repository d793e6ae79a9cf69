import { randomBytes } from "node:crypto";
import { aesGcm } from "@payhooks/core/seal";
import type { Ground } from "./rig.ts";

const key = { id: "contract", key: randomBytes(32) };

/** The same ground, with a seal between each inbox and its store. */
export function sealed(ground: Ground): Ground {
  return {
    ...ground,
    open() {
      const { store, ...parts } = ground.open();
      return { ...parts, store: aesGcm([key]).over(store, ground.clock) };
    },
  };
}
