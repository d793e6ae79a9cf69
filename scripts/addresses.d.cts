export interface Addresses {
  readonly homepage: string;
  readonly bugs: string;
  readonly repository: { readonly type: "git"; readonly url: string; readonly directory: string };
}

export function addressesOf(directory: string): Partial<Addresses>;
export function addressesIn(repository: string, directory: string): Addresses;
