/**
 * The kernel's table of connections, as far as UDP goes, in virtual time: how long entries stay,
 * what happens when there is no room, and which of two packets wins that want to begin the same
 * connection.
 */

/** What differs from kernel to kernel, and what an administrator sets. */
export interface ConntrackSettings {
  /** `nf_conntrack_max`: no more entries than this. */
  readonly max: number;
  /** `nf_conntrack_buckets`: entries hang on so many chains. */
  readonly buckets: number;
  /**
   * `nf_conntrack_udp_timeout`, seconds: until a reply has come, and on newer kernels for short
   * exchanges after that.
   */
  readonly udpSeconds: number;
  /** `nf_conntrack_udp_timeout_stream`, seconds. */
  readonly streamSeconds: number;
  /**
   * Seconds for which packets must have gone both ways before it is a stream; 0: with the first
   * reply.
   */
  readonly streamAfterSeconds: number;
  /**
   * Two packets of one connection at once: the second is lost (`insert_failed`), or joins the first
   * (`clash_resolve`).
   */
  readonly clash: 'lost' | 'resolved';
}

/**
 * What kernels have come with. 5.0: short exchanges are no streams; 5.8: packets that clash are not
 * lost.
 */
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

/** What becomes of a packet. */
export type Fate = 'new' | 'known' | 'dropped';

interface ConntrackEntry {
  readonly beganMs: number;
  /** Packets have come the other way. */
  replied: boolean;
  /** It is a stream, which is not dropped to make room. */
  assured: boolean;
  endsMs: number;
}

/**
 * The table of one machine. Times are milliseconds of the caller's clock, which never goes back.
 */
export class ConntrackTable {
  readonly #settings: ConntrackSettings;
  readonly #entries = new Map<string, ConntrackEntry>();
  /** Packets that found no room (`drop`). */
  dropped = 0;
  /** Entries that made room for others (`early_drop`). */
  earlyDropped = 0;
  /** Packets that lost a race (`insert_failed`). */
  insertFailed = 0;
  /** Packets that would have lost it (`clash_resolve`). */
  clashResolved = 0;

  constructor(settings: ConntrackSettings) {
    this.#settings = settings;
  }

  /** The number of entries, also of expired ones that were not collected yet. */
  get size(): number {
    return this.#entries.size;
  }

  /** Entries of a chain, on average: each packet looks through one. */
  get chainLength(): number {
    return this.#entries.size / this.#settings.buckets;
  }

  /** Seconds that the entry of a connection has left; null: there is none. */
  secondsLeft(flow: string, nowMs: number): number | null {
    const entry = this.#live(flow, nowMs);
    return entry === null ? null : (entry.endsMs - nowMs) / 1000;
  }

  /**
   * Takes one packet.
   * @param flow the connection: its addresses and ports in the original direction
   */
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
   * Takes two packets that both find no entry: those of A and AAAA, which two processors handle at
   * once. Address translation makes connections of them that want the same place.
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

  /** Removes what is over, as the kernel's collector does now and then. */
  collect(nowMs: number): void {
    for (const [flow, { endsMs }] of this.#entries) if (endsMs <= nowMs) this.#entries.delete(flow);
  }

  /** Removes one entry: `conntrack -D`. */
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

  /** An entry that is over, or one that is no stream: of a few chains the first. */
  #makeRoom(nowMs: number): boolean {
    let looked = 0;
    for (const [flow, { endsMs, assured }] of this.#entries) {
      if (endsMs <= nowMs || !assured) {
        this.#entries.delete(flow);
        if (endsMs > nowMs) this.earlyDropped++;
        return true;
      }
      // As many as hang on the eight chains that the kernel looks at.
      if (++looked > 8 * Math.max(1, this.chainLength)) return false;
    }
    return false;
  }
}
