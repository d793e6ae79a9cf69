export declare const pgbouncerSuites: string[];
export declare function hasPgbouncer(): boolean;
export declare function expectPgbouncer(): void;
