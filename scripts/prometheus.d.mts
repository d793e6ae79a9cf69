export declare const prometheusSuites: string[];
export declare function hasPrometheus(): boolean;
export declare function expectPrometheus(): void;
