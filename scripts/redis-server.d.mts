export declare function hasRedis(): boolean;
export declare function provideRedis(): void;
