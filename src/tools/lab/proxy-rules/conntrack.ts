/**
 * The kernel's connection tracking table for UDP in virtual time: how long entries stay, what happens when
 * the table is full, and which of two packets wins that want to create the same connection.
 */

export interface ConntrackSettings {
  /** `nf_conntrack_max`: the limit of entries. */
  readonly max: number;
  /** `nf_conntrack_buckets`: the number of hash chains. */
  readonly buckets: number;
  /** `nf_conntrack_udp_timeout`, seconds: until a reply, and on newer kernels for short exchanges after it. */
  readonly udpSeconds: number;
  /** `nf_conntrack_udp_timeout_stream`, seconds. */
  readonly streamSeconds: number;
  /** Seconds with packets in both directions before it is a stream; 0: with the first reply. */
  readonly streamAfterSeconds: number;
  /**
   * Two packets of one connection at once: the second is lost (`insert_failed`), or joins the first
   * (`clash_resolve`).
   */
  readonly clash: 'lost' | 'resolved';
}

/** Defaults by kernel version. From 5.0: short exchanges are not streams. From 5.8: clashing packets are not lost. */
export function kernelOf(version: string): ConntrackSettings {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isAtLeast = (wanted: number, than: number): boolean =>
    major > wanted || (major === wanted && minor >= than);
  return {
    max: 262_144,
    buckets: 65_536,
    udpSeconds: 30,
    streamSeconds: isAtLeast(5, 0) ? 120 : 180,
    streamAfterSeconds: isAtLeast(5, 0) ? 2 : 0,
    clash: isAtLeast(5, 8) ? 'resolved' : 'lost',
  };
}

export type Fate = 'new' | 'known' | 'dropped';

interface ConntrackEntry {
  readonly beganMs: number;
  /** Packets were seen in the other direction. */
  replied: boolean;
  /** It is a stream, which is not dropped to make room. */
  assured: boolean;
  endsMs: number;
}

/** The table of one machine. Times are milliseconds of the caller's clock, which must not go back. */
export class ConntrackTable {
  readonly #settings: ConntrackSettings;
  readonly #entries = new Map<string, ConntrackEntry>();
  /** Packets dropped because the table was full (`drop`). */
  dropped = 0;
  /** Entries that were evicted for others (`early_drop`). */
  earlyDropped = 0;
  /** Packets that lost a race (`insert_failed`). */
  insertFailed = 0;
  /** Packets that would have lost it (`clash_resolve`). */
  clashResolved = 0;

  constructor(settings: ConntrackSettings) {
    this.#settings = settings;
  }

  /** Includes expired entries that were not collected yet. */
  get size(): number {
    return this.#entries.size;
  }

  /** Average entries of a chain: each packet searches one. */
  get chainLength(): number {
    return this.#entries.size / this.#settings.buckets;
  }

  /** The remaining seconds of a connection's entry; null: none. */
  secondsLeft(flow: string, nowMs: number): number | null {
    const entry = this.#live(flow, nowMs);
    return entry === null ? null : (entry.endsMs - nowMs) / 1000;
  }

  /** @param flow the connection: its addresses and ports in the original direction */
  packet(flow: string, direction: 'original' | 'reply', nowMs: number): Fate {
    const known = this.#live(flow, nowMs);
    if (known !== null) {
      this.#refresh(known, direction, nowMs);
      return 'known';
    }
    if (this.#entries.size >= this.#settings.max && !this.#makeRoom(nowMs)) {
      this.dropped++;
      return 'dropped';
    }
    const endsMs = nowMs + this.#settings.udpSeconds * 1000;
    this.#entries.set(flow, { beganMs: nowMs, replied: false, assured: false, endsMs });
    return 'new';
  }

  /**
   * Takes two packets without an entry: those of A and AAAA, which two CPUs handle at once. Address
   * translation makes them connections that need the same place.
   */
  pair(flow: string, nowMs: number): readonly [Fate, Fate] {
    const first = this.packet(flow, 'original', nowMs);
    if (first !== 'new') return [first, this.packet(flow, 'original', nowMs)];
    if (this.#settings.clash === 'resolved') {
      this.clashResolved++;
      return ['new', 'known'];
    }
    this.insertFailed++;
    return ['new', 'dropped'];
  }

  /** Removes expired entries, as the kernel's collector does periodically. */
  collect(nowMs: number): void {
    for (const [flow, { endsMs }] of this.#entries) if (endsMs <= nowMs) this.#entries.delete(flow);
  }

  /** `conntrack -D`. */
  delete(flow: string): boolean {
    return this.#entries.delete(flow);
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

  /** Evicts the first entry of a few chains that is expired or not a stream. */
  #makeRoom(nowMs: number): boolean {
    let looked = 0;
    for (const [flow, { endsMs, assured }] of this.#entries) {
      if (endsMs <= nowMs || !assured) {
        this.#entries.delete(flow);
        if (endsMs > nowMs) this.earlyDropped++;
        return true;
      }
      // The number of entries on the eight chains that the kernel searches.
      if (++looked > 8 * Math.max(1, this.chainLength)) return false;
    }
    return false;
  }
}
