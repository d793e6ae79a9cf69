export interface ReleaseState {
  /** `repository` of the root's manifest. */
  readonly repository: string;
  /** One of each package that is published. */
  readonly versions: readonly string[];
  readonly changelog: string;
  /** Files in .changeset that wait for a version. */
  readonly changesets: readonly string[];
  /** The tag that is being released. */
  readonly tag: string | null;
  /** The repository whose workflow runs, as `owner/name`. */
  readonly building: string | null;
}

export function releaseProblems(state: ReleaseState): readonly string[];
