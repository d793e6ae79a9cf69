interface Where {
  readonly debian?: string;
  readonly path?: string;
}

export declare const postgresSuites: string[];
export declare function postgresBin(where?: Where): string | null;
export declare function expectPostgres(where?: Where): void;
