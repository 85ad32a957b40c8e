/**
 * Captures that have the same packets, taken at several places: which these are, and how far their
 * clocks are apart. They are read together, so that a packet that several of them have counts once.
 */
import { FLAG } from '../../server/wire/iana.ts';
import type { PassingMessage } from './read/packets/dissect.ts';

/** Queries by which captures are compared: the first of each. */
const SAMPLE_MAX = 20_000;
/** So many packets, and so much of the shorter sample, are no chance. */
const SHARED = { least: 3, share: 0.05 };
/** Bytes of a query that tell it from others with the same ids. */
const TOLD_BY = 40;
/**
 * Clocks that differ by less are the way of the packets, milliseconds: a reply takes as long, and
 * must not come before the copy of its query.
 */
const NEAR_MS = 0.2;
/** A packet is seen so much later at the next place at least, milliseconds. */
const WAY_MS = 0.01;

interface Sighting {
  readonly timeMs: number;
  readonly ttl: number;
}

/** The first queries of one capture. */
export class QuerySample {
  readonly #seen = new Map<string, Sighting>();

  /** Whether there is room for more. */
  get isFull(): boolean {
    return this.#seen.size >= SAMPLE_MAX;
  }

  get size(): number {
    return this.#seen.size;
  }

  add({ bytes, start, end, protocol, sourcePort, ipId, timeMs, ttl }: PassingMessage): void {
    if (protocol !== 'udp' || this.isFull || end - start < 12) return;
    if ((bytes[start + 2]! & (FLAG.QR >> 8)) !== 0) return;
    const told = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    const key = `${sourcePort} ${ipId} ${told.toString('latin1', 0, TOLD_BY)}`;
    if (!this.#seen.has(key)) this.#seen.set(key, { timeMs, ttl });
  }

  /**
   * How far the other capture's clock is ahead of this one's, milliseconds; null: they do not have
   * the same packets. What was sent with a greater time to live was captured nearer to its sender,
   * and so before.
   */
  aheadOf(other: QuerySample): number | null {
    const differences: number[] = [];
    let hops = 0;
    for (const [key, { timeMs, ttl }] of this.#seen) {
      const there = other.#seen.get(key);
      if (there === undefined) continue;
      differences.push(there.timeMs - timeMs);
      hops += Math.sign(ttl - there.ttl);
    }
    const least = Math.max(SHARED.least, SHARED.share * Math.min(this.size, other.size));
    if (differences.length < least) return null;
    differences.sort((one, next) => one - next);
    // One packet may have waited on its way: the quickest tells the clocks.
    const first = differences[Math.floor(differences.length / 50)]!;
    const last = differences.at(-1 - Math.floor(differences.length / 50))!;
    if (hops > 0) return first >= 0 && first < NEAR_MS ? 0 : first - WAY_MS;
    if (hops < 0) return last <= 0 && last > -NEAR_MS ? 0 : last + WAY_MS;
    const middle = differences[differences.length >> 1]!;
    return Math.abs(middle) < NEAR_MS ? 0 : middle;
  }
}

/** One capture of a group. */
export interface Aligned {
  /** Its place in the list of captures. */
  readonly at: number;
  /** How far its clock is ahead of that of the first of the group, milliseconds. */
  readonly aheadMs: number;
}

/** Groups of captures that have the same packets, in the order of the first of each. */
export function sameTraffic(samples: readonly QuerySample[]): readonly (readonly Aligned[])[] {
  const groups: Aligned[][] = [];
  for (const [at, sample] of samples.entries()) {
    if (!joinsGroup(groups, at, sample, samples)) groups.push([{ at, aheadMs: 0 }]);
  }
  return groups;
}

/** Adds the capture to the first group with the same packets. @returns whether there is one */
function joinsGroup(
  groups: readonly Aligned[][],
  at: number,
  sample: QuerySample,
  samples: readonly QuerySample[],
): boolean {
  for (const group of groups) {
    const aheadMs = aheadIn(group, sample, samples);
    if (aheadMs === null) continue;
    group.push({ at, aheadMs });
    return true;
  }
  return false;
}

function aheadIn(
  group: readonly Aligned[],
  sample: QuerySample,
  samples: readonly QuerySample[],
): number | null {
  for (const { at, aheadMs } of group) {
    const ahead = samples[at]!.aheadOf(sample);
    if (ahead !== null) return aheadMs + ahead;
  }
  return null;
}
