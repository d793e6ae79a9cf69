import { type Html, html } from "@payhooks/pages";
import type { Change } from "../changes.ts";
import type { Delivery } from "../deliveries/delivery.ts";
import type { TransactionRecord } from "../payments/transactions.ts";
import type { Sandbox } from "../sandbox.ts";
import { deliveryRow } from "./delivery-row.ts";
import type { Fragment, ListName } from "./fragment.ts";
import { transactionRow } from "./transaction-row.ts";

/** How many transactions and deliveries the dashboard shows. The search and the control API cover all of them. */
const MAX_SHOWN_ROWS = 100;

/** Selects transactions and deliveries. */
export interface FeedFilter {
  /** A part of a reference or an id, in upper or lower case. Empty for all. */
  readonly search: string;
  readonly failedOnly: boolean;
}

/** Reads the filter from the query of the dashboard's address: `?search=order-7&failed=1`. */
export function readFilter({ search = "", failed }: Readonly<Record<string, string>>): FeedFilter {
  return { search: search.trim().toLowerCase(), failedOnly: failed === "1" };
}

/** The form that filters both lists. Without scripts, it loads the page again. */
export function filterForm({ search, failedOnly }: FeedFilter): Html {
  return html`<form class="filter" role="search" method="get" action="/">
      <input type="search" name="search" value="${search}" placeholder="Search reference or id" aria-label="Search reference or id" autocomplete="off" spellcheck="false">
      <label class="check" title="Transactions that failed, and deliveries with an attempt that was not acknowledged"><input type="checkbox" name="failed" value="1" ${failedOnly && html`checked`}>Failed only</label>
      <p class="hint" id="zones">Times: UTC</p>
    </form>`;
}

/** The part of a list that is shown. */
interface ListExcerpt<Item> {
  /** The newest items that fit the filter, oldest first. */
  readonly shown: readonly Item[];
  readonly fitting: number;
  readonly all: number;
}

/** Both lists. */
export function feedLists(sandbox: Sandbox, filter: FeedFilter): Html {
  const transactions = transactionsIn(sandbox, filter);
  const deliveries = deliveriesIn(sandbox, filter);
  const nothing = html`Nothing matches.`;
  const noTransactions = html`Nothing yet. Take a deposit here, or send one to<br><code>POST ${sandbox.url}/api/v2/payment/direct</code>`;
  const noDeliveries = html`No callback or webhook was sent yet. A transaction with a callback address sends one.`;
  return html`<section class="card" id="transactions" aria-labelledby="transactions-title">
      <header><h2 id="transactions-title">Transactions</h2><span class="end hint">newest first</span></header>
      ${note("transaction", transactions, filter)}
      <div class="list" data-list="transaction" data-limit="${MAX_SHOWN_ROWS}">${transactions.shown.toReversed().map(transactionRow)}
        <p class="empty">${isFiltering(filter) ? nothing : noTransactions}</p></div>
    </section>
    <section class="card" id="deliveries" aria-labelledby="deliveries-title">
      <header><h2 id="deliveries-title">Dispatch log</h2><span class="end hint">open one for payload and signature</span></header>
      ${note("delivery", deliveries, filter)}
      <div class="list" data-list="delivery" data-limit="${MAX_SHOWN_ROWS}">${deliveries.shown.toReversed().map(deliveryRow)}
        <p class="empty">${isFiltering(filter) ? nothing : noDeliveries}</p></div>
    </section>`;
}

/** The parts of the lists that changes affect: rows, and the notes above them. */
export function feedFragments(sandbox: Sandbox, filter: FeedFilter, changes: readonly Change[]): Fragment[] {
  const idsOf = (list: ListName) => changes.filter(({ topic }) => topic === list).map(({ id }) => id);
  const rows = <Item>(
    list: ListName,
    listing: ListExcerpt<Item>,
    idOf: (item: Item) => string,
    row: (item: Item) => Html,
  ) => {
    const shownItems = new Map(listing.shown.map((item) => [idOf(item), item]));
    const fragments = idsOf(list).map((id): Fragment => {
      const item = shownItems.get(id);
      return { id: `${list}-${id}`, list, html: item === undefined ? "" : String(row(item)) };
    });
    return [...fragments, { id: noteId(list), html: String(note(list, listing, filter)) }];
  };
  return [
    ...(idsOf("transaction").length === 0
      ? []
      : rows(
          "transaction",
          transactionsIn(sandbox, filter),
          ({ transaction }) => transaction.id,
          transactionRow,
        )),
    ...(idsOf("delivery").length === 0
      ? []
      : rows("delivery", deliveriesIn(sandbox, filter), ({ id }) => id, deliveryRow)),
  ];
}

function transactionsIn(sandbox: Sandbox, filter: FeedFilter): ListExcerpt<TransactionRecord> {
  return listExcerpt(sandbox.transactions.list(), ({ transaction: { id, reference, status } }) => {
    return matchesSearch(filter, reference, id) && (!filter.failedOnly || status === "FAILED");
  });
}

function deliveriesIn(sandbox: Sandbox, filter: FeedFilter): ListExcerpt<Delivery> {
  return listExcerpt(sandbox.deliveries.list(), ({ id, reference, deduplicationKey, attempts }) => {
    const hasFailed = attempts.some(({ acknowledged }) => !acknowledged);
    return matchesSearch(filter, reference ?? "", deduplicationKey, id) && (!filter.failedOnly || hasFailed);
  });
}

function listExcerpt<Item>(all: readonly Item[], fits: (item: Item) => boolean): ListExcerpt<Item> {
  const fitting = all.filter(fits);
  return { shown: fitting.slice(-MAX_SHOWN_ROWS), fitting: fitting.length, all: all.length };
}

function matchesSearch({ search }: FeedFilter, ...texts: readonly string[]): boolean {
  return search === "" || texts.some((text) => text.toLowerCase().includes(search));
}

function isFiltering({ search, failedOnly }: FeedFilter): boolean {
  return search !== "" || failedOnly;
}

const noteId = (list: ListName): string => `${list}-note`;

/** Says how many of all items are shown. It is empty if all of them are. */
function note(list: ListName, { shown, fitting, all }: ListExcerpt<unknown>, filter: FeedFilter): Html {
  const isCut = fitting > shown.length;
  const path = list === "transaction" ? "/sandbox/transactions" : "/sandbox/deliveries";
  const text = isFiltering(filter)
    ? isCut
      ? html`Only the last ${shown.length} of ${fitting} that match are shown.`
      : html`${fitting} of ${all} match.`
    : isCut &&
      html`Only the last ${shown.length} of ${all} are shown. Search finds all, and <a href="${path}">${path}</a> lists all.`;
  return html`<p class="note" id="${noteId(list)}">${text}</p>`;
}
