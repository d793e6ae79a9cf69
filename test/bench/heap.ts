import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Bytes of this process's heap that are in use, after everything that can go has gone. */
export function heapInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
