/** The limits of the live model. */
import { limit, type Limit } from '../../server/base/limits.ts';

/** Values for the limits. */
export interface LiveLimits {
  /** The time in full detail, milliseconds. */
  readonly windowMs: number;
  /** Bytes of lookups in full detail; with more, the oldest are dropped before their time. */
  readonly detailBytes: number;
  /** Clients that are counted one by one; with more, those that ask least share places. */
  readonly clients: number;
  readonly names: number;
  /** Servers, upstreams and the pods behind services, in the same way. */
  readonly servers: number;
  /** Findings that are remembered; the one that ended first is forgotten first. */
  readonly findings: number;
  /** Changes that are remembered. */
  readonly changes: number;
  /** The period between runs of doctor's rules, milliseconds. */
  readonly checkMs: number;
}

/** The range of each, and its default. */
export const liveLimits: { readonly [Key in keyof LiveLimits]: Limit } = {
  windowMs: limit({ default: 600_000, min: 10_000, max: 86_400_000 }),
  detailBytes: limit({ default: 32 * 1024 * 1024, min: 64 * 1024, max: 4 * 1024 ** 3 }),
  clients: limit({ default: 10_000, min: 16, max: 1_000_000 }),
  names: limit({ default: 5000, min: 16, max: 1_000_000 }),
  servers: limit({ default: 1000, min: 4, max: 100_000 }),
  findings: limit({ default: 500, min: 10, max: 100_000 }),
  changes: limit({ default: 500, min: 10, max: 100_000 }),
  checkMs: limit({ default: 3000, min: 500, max: 600_000 }),
};
