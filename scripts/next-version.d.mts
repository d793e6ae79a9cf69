export type ChangeKind = "major" | "minor" | "patch";

export interface Change {
  readonly kind: ChangeKind;
  readonly text: string;
}

export const HEADINGS: Readonly<Record<ChangeKind, string>>;
export function latestVersion(versions: readonly string[]): string | undefined;
export function nextVersion(current: string, kinds: readonly ChangeKind[]): string;
export function withSection(changelog: string, version: string, changes: readonly Change[]): string;
