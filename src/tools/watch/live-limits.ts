/** The limits of the live model. */
import { limit, type Limit } from '../../server/base/limits.ts';

/** Values for the limits. */
export interface LiveLimits {
  /** The period kept in full detail, in milliseconds. */
  readonly windowMs: number;
  /** Limit in bytes for lookups in full detail. Beyond this, the oldest are dropped early. */
  readonly detailBytes: number;
  /** Limit on clients counted individually. Beyond this, the least active share slots. */
  readonly clients: number;
  readonly names: number;
  /** The same limit for servers, upstreams and the pods behind services. */
  readonly servers: number;
  /** The number of findings to remember. The one that ended first is discarded first. */
  readonly findings: number;
  /** The number of changes to remember. */
  readonly changes: number;
  /** The number of names and types whose answers are remembered, for all servers that report their reloads. */
  readonly answers: number;
  /** The number of reloads to remember. */
  readonly reloads: number;
  /** The interval between runs of doctor's rules, in milliseconds. */
  readonly checkMs: number;
}

/** Each limit's range and default. */
export const liveLimits: { readonly [Key in keyof LiveLimits]: Limit } = {
  windowMs: limit({ default: 600_000, min: 10_000, max: 86_400_000 }),
  detailBytes: limit({ default: 32 * 1024 * 1024, min: 64 * 1024, max: 4 * 1024 ** 3 }),
  clients: limit({ default: 10_000, min: 16, max: 1_000_000 }),
  names: limit({ default: 5000, min: 16, max: 1_000_000 }),
  servers: limit({ default: 1000, min: 4, max: 100_000 }),
  findings: limit({ default: 500, min: 10, max: 100_000 }),
  changes: limit({ default: 500, min: 10, max: 100_000 }),
  answers: limit({ default: 2000, min: 16, max: 100_000 }),
  reloads: limit({ default: 20, min: 1, max: 1000 }),
  checkMs: limit({ default: 3000, min: 500, max: 600_000 }),
};
