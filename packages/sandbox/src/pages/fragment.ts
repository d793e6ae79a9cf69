/** A list of the dashboard. */
export type ListName = "transaction" | "delivery";

/** A part of the page that a change affects, as the dashboard's script gets it. */
export interface Fragment {
  /** The id of the element to replace. */
  readonly id: string;
  /** If the element is new, it goes to the top of this list. */
  readonly list?: ListName;
  /** Empty if the element has to go. Absent if the whole page has to be loaded again. */
  readonly html?: string;
}
