/**
 * Finds captures of the same packets taken in several places, and how far apart their clocks are. They are read
 * together, so that a packet in several of them counts once.
 */
import { FLAG } from '../../server/wire/iana.ts';
import type { PassingMessage } from './read/packets/dissect.ts';

/** The number of queries to compare, from the start of each capture. */
const SAMPLE_MAX = 20_000;
/** If captures have this many packets in common, and this share of the shorter sample, that is not a coincidence. */
const SHARED = { least: 3, share: 0.05 };
/** The bytes of a query that distinguish it from others with the same IDs. */
const COMPARED_BYTES = 40;
/**
 * In milliseconds. A smaller clock difference is the packets' travel time. Replies take just as long, and must not
 * precede the copy of their query.
 */
const NEAR_MS = 0.2;
/** The shortest time between seeing a packet in two places, in milliseconds. */
const WAY_MS = 0.01;

interface Sighting {
  readonly timeMs: number;
  readonly ttl: number;
}

export class QuerySample {
  readonly #seen = new Map<string, Sighting>();

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
    const key = `${sourcePort} ${ipId} ${told.toString('latin1', 0, COMPARED_BYTES)}`;
    if (!this.#seen.has(key)) this.#seen.set(key, { timeMs, ttl });
  }

  /**
   * The number of milliseconds that the other capture's clock is ahead of this one's, or null if their packets differ.
   * A packet with a greater TTL was captured closer to its sender, and therefore earlier.
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
    // Packets may be delayed in transit, so the fastest ones show the clock difference.
    const first = differences[Math.floor(differences.length / 50)]!;
    const last = differences.at(-1 - Math.floor(differences.length / 50))!;
    if (hops > 0) return first >= 0 && first < NEAR_MS ? 0 : first - WAY_MS;
    if (hops < 0) return last <= 0 && last > -NEAR_MS ? 0 : last + WAY_MS;
    const middle = differences[differences.length >> 1]!;
    return Math.abs(middle) < NEAR_MS ? 0 : middle;
  }
}

export interface Aligned {
  /** Its index in the list of captures. */
  readonly at: number;
  /** The number of milliseconds that its clock is ahead of the group's first. */
  readonly aheadMs: number;
}

/** Groups captures of the same packets, ordered by each group's first capture. */
export function sameTraffic(samples: readonly QuerySample[]): readonly (readonly Aligned[])[] {
  const groups: Aligned[][] = [];
  for (const [at, sample] of samples.entries()) {
    if (!joinsGroup(groups, at, sample, samples)) groups.push([{ at, aheadMs: 0 }]);
  }
  return groups;
}

/**
 * Adds the capture to the first group that has the same packets.
 * @returns false if there is none
 */
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
