import type { FrameworkName, Mode, Scheme } from "./protocol.ts";

/** How little ours may cost beside another variant of the same group: its processor time ÷ ours. */
export interface CostGoal {
  readonly what: string;
  readonly framework: FrameworkName;
  readonly scheme: Scheme;
  readonly ours: Mode;
  readonly against: Mode;
  /** The same question with the handlers left to another process, to tell what is the accepting. */
  readonly acceptingAlone: Mode | null;
  /** And with the least in place of ours: no receiver can come nearer to what is written by hand. */
  readonly bound: Mode | null;
  /** By Node's major version. */
  readonly atLeast: Readonly<Record<20 | 24, number>>;
}

const against = (
  what: string,
  framework: FrameworkName,
  scheme: Scheme,
  other: Mode,
  on20: number,
  on24: number,
): CostGoal => ({
  what,
  framework,
  scheme,
  ours: "memory",
  against: other,
  acceptingAlone: "memory-accept",
  bound: other === "inline" ? "least" : null,
  atLeast: { 20: on20, 24: on24 },
});

export const COST_GOALS: readonly CostGoal[] = [
  against("Express 5, RSA: inline verify, cached key ÷ ours", "express", "rsa", "inline", 0.96, 0.94),
  against("Express 5, HMAC: inline HMAC ÷ ours", "express", "hmac", "inline", 0.94, 0.91),
  against("Fastify, RSA: inline verify, cached key ÷ ours", "fastify", "rsa", "inline", 0.9, 0.88),
  against("Hono on Node, RSA: inline verify, cached key ÷ ours", "hono", "rsa", "inline", 0.9, 0.88),
  against("Fastify, HMAC: inline HMAC ÷ ours", "fastify", "hmac", "inline", 0.84, 0.8),
  against("Express 5, RSA: PEM per call ÷ ours", "express", "rsa", "pem", 1.8, 1.3),
  {
    what: "Express 5, RSA, accepting only: memory ÷ Redis",
    framework: "express",
    scheme: "rsa",
    ours: "redis-accept",
    against: "memory-accept",
    acceptingAlone: null,
    bound: null,
    atLeast: { 20: 0.6, 24: 0.4 },
  },
];

/** Bytes of a finished record, in memory and in Redis. */
export const RECORD_BYTES_GOAL = 430;

/** The versions that there are goals for; another one is held to those of the nearest below. */
export function goalsOf(nodeVersion: string): 20 | 24 {
  return Number(nodeVersion.split(".")[0]) >= 24 ? 24 : 20;
}
