export function entrySizes(): Promise<
  readonly { readonly entry: string; readonly minifiedBytes: number; readonly gzipBytes: number }[]
>;
