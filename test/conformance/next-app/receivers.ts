import { type Kind, receiverOf } from "../application.ts";
import { secrets } from "../servers/environment.ts";

/** Asked at the first request: `next build` has no secrets. */
export const receiver = (kind: Kind) => () => receiverOf(kind, secrets());
