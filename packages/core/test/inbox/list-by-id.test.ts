import { source, unsafeUnsigned } from "@payhooks/core/sources";
import { fakeClock } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { notSearchableError } from "../../src/inbox/search/event-reader.ts";
import { memoryStore } from "../../src/memory/store.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { receiving } from "../sources/receiving.ts";

const bank = source({
  verify: unsafeUnsigned({ because: "a test of what comes after the verification" }),
  read: ({ body }: { readonly body: { readonly id: string } }) => ({ ...body, name: "paid", data: body }),
});

it("an event of a source is found by its id in a store that keeps no index", async () => {
  const clock = fakeClock();
  const memory = memoryStore({ clock });
  const store: RecordStore = {
    ...memory,
    async list(filter, ...page) {
      if (filter.state === "any" || filter.state === "finished") throw notSearchableError("This store");
      return memory.list(filter, ...page);
    },
  };
  const inbox = createInbox(store, { clock: environmentOf(clock) });
  const { post, receiver } = receiving(bank, { clock, inbox });
  await post({ body: '{"id":"evt_1"}' });
  const find = async (query: { readonly id: string; readonly flow?: "payments" }) =>
    (await receiver.events.list(query)).events;
  expect(await find({ id: "evt_1" })).toMatchObject([{ flow: "any", id: "evt_1", state: "done" }]);
  expect(await find({ id: "evt_2" })).toEqual([]);
  expect(await find({ id: "evt_1", flow: "payments" })).toEqual([]);
});
