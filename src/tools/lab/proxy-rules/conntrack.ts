/**
 * Models the kernel's connection tracking table for UDP in virtual time, including how long entries stay and what
 * happens when the table is full.
 */

export interface ConntrackSettings {
  /** `nf_conntrack_max`: the maximum number of entries. */
  readonly max: number;
  /** `nf_conntrack_buckets`: the number of hash chains. */
  readonly buckets: number;
  /**
   * `nf_conntrack_udp_timeout` in seconds. Applies until there is a reply and, on newer kernels, also to short
   * exchanges after it.
   */
  readonly udpSeconds: number;
  /** `nf_conntrack_udp_timeout_stream`, in seconds. */
  readonly streamSeconds: number;
  /**
   * Seconds with packets in both directions before a connection counts as a stream. If 0, the first reply is enough.
   */
  readonly streamAfterSeconds: number;
}

/** Defaults by kernel version. Short exchanges have not counted as streams since 5.0. */
export function kernelOf(version: string): ConntrackSettings {
  const isNew = Number.parseInt(version, 10) >= 5;
  return {
    max: 262_144,
    buckets: 65_536,
    udpSeconds: 30,
    streamSeconds: isNew ? 120 : 180,
    streamAfterSeconds: isNew ? 2 : 0,
  };
}

export type Fate = 'new' | 'known' | 'dropped';

interface ConntrackEntry {
  readonly beganMs: number;
  /** Packets have been seen in the other direction. */
  replied: boolean;
  /** Marked as a stream, which is never evicted to make room. */
  assured: boolean;
  endsMs: number;
}

/** The table on one machine. Times are milliseconds on the caller's clock, which must not go backwards. */
export class ConntrackTable {
  readonly #settings: ConntrackSettings;
  readonly #entries = new Map<string, ConntrackEntry>();

  constructor(settings: ConntrackSettings) {
    this.#settings = settings;
  }

  /** Includes expired entries that have not been collected yet. */
  get size(): number {
    return this.#entries.size;
  }

  /** Seconds until a connection's entry expires, or null if there is no entry. */
  secondsLeft(flow: string, nowMs: number): number | null {
    const entry = this.#live(flow, nowMs);
    return entry === null ? null : (entry.endsMs - nowMs) / 1000;
  }

  /** @param flow the connection, as addresses and ports in the original direction */
  packet(flow: string, direction: 'original' | 'reply', nowMs: number): Fate {
    const known = this.#live(flow, nowMs);
    if (known !== null) {
      this.#refresh(known, direction, nowMs);
      return 'known';
    }
    if (this.#entries.size >= this.#settings.max && !this.#makeRoom(nowMs)) return 'dropped';
    const endsMs = nowMs + this.#settings.udpSeconds * 1000;
    this.#entries.set(flow, { beganMs: nowMs, replied: false, assured: false, endsMs });
    return 'new';
  }

  /** Removes expired entries, like the kernel's periodic garbage collector. */
  collect(nowMs: number): void {
    for (const [flow, { endsMs }] of this.#entries) if (endsMs <= nowMs) this.#entries.delete(flow);
  }

  #live(flow: string, nowMs: number): ConntrackEntry | null {
    const entry = this.#entries.get(flow);
    if (entry === undefined) return null;
    if (entry.endsMs > nowMs) return entry;
    this.#entries.delete(flow);
    return null;
  }

  #refresh(entry: ConntrackEntry, direction: 'original' | 'reply', nowMs: number): void {
    const { udpSeconds, streamSeconds, streamAfterSeconds } = this.#settings;
    if (direction === 'reply') entry.replied = true;
    const age = (nowMs - entry.beganMs) / 1000;
    const isStream = entry.replied && (streamAfterSeconds === 0 || age > streamAfterSeconds);
    entry.assured ||= isStream;
    entry.endsMs = nowMs + (isStream ? streamSeconds : udpSeconds) * 1000;
  }

  /** Searches a few chains and evicts the first entry that has expired or is not a stream. */
  #makeRoom(nowMs: number): boolean {
    const chainLength = this.#entries.size / this.#settings.buckets;
    let looked = 0;
    for (const [flow, { endsMs, assured }] of this.#entries) {
      if (endsMs <= nowMs || !assured) {
        this.#entries.delete(flow);
        return true;
      }
      // The number of entries in eight chains, which is how many the kernel searches.
      if (++looked > 8 * Math.max(1, chainLength)) return false;
    }
    return false;
  }
}
