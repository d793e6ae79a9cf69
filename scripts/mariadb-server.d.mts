export declare const mariadbSuites: string[];
export declare function hasMariadb(): boolean;
export declare function expectMariadb(): void;
