export declare const deploySuites: string[];
export declare function hasDeployTools(): boolean;
export declare function expectDeployTools(): void;
