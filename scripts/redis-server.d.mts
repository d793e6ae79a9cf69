export declare const redisSuites: string[];
export declare function hasRedis(): boolean;
export declare function provideRedis(): void;
