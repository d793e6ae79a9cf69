export declare function processTerm(term: string): string | string[];
