/** A schema of any library that follows Standard Schema, version 1: Zod, Valibot, ArkType and others (standardschema.dev). */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** A schema's result for a value: its output, or its issues. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly unknown[] | undefined;
      }[];
    };

/** The type of a schema's output. */
export type OutputOf<Schema> = Schema extends StandardSchemaV1<infer _Input, infer Output> ? Output : never;

const MAX_SHOWN_PATHS = 5;

/** The paths at which a value does not fit, without any of its texts: a sender's text is in no message. */
export function pathsOf(issues: readonly { readonly path?: readonly unknown[] | undefined }[]): string {
  const paths = new Set(issues.map(({ path = [] }) => path.map(nameOf).join(".") || "the whole"));
  const shownPaths = [...paths].slice(0, MAX_SHOWN_PATHS).join(", ");
  return paths.size > MAX_SHOWN_PATHS ? `${shownPaths} and ${paths.size - MAX_SHOWN_PATHS} more` : shownPaths;
}

/** A segment of a path: a name or a number, or an object with one as its `key`. */
function nameOf(segment: unknown): string {
  const key = typeof segment === "object" && segment !== null && "key" in segment ? segment.key : segment;
  return String(key).slice(0, 50);
}
