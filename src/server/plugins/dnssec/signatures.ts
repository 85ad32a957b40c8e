/** Finished signatures and those in progress. Each RRset has at most one in progress. */
import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { signedRecords, type SignedSet } from '../../dnssec/canonical.ts';
import { signersOf, type Signer } from '../../dnssec/signer.ts';
import { signSet } from '../../dnssec/signature.ts';
import { TYPE } from '../../wire/iana.ts';
import type { WireName } from '../../wire/name.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;
/** Number of seconds added at both ends of the validity period, because clients' clocks may be wrong. */
const BEFORE = 3 * HOUR;
const AFTER = 8 * DAY;
/** Signatures are renewed `RENEW` seconds before they expire, and are no longer sent `LAST` seconds before. */
const RENEW = 2 * DAY;
const LAST = HOUR;
/** Number of marks, which is a power of two. */
const MADE = 16_384;

export interface Signed {
  readonly records: readonly Uint8Array[];
  /** Seconds since 1970. */
  readonly inception: number;
  readonly expiration: number;
}

/** Time when a signature must be renewed, in seconds since 1970. */
export function renewalOf({ expiration }: Signed): number {
  return expiration - RENEW;
}

export interface WantedSignature {
  readonly set: SignedSet;
  readonly records: Uint8Array;
  readonly zone: WireName;
  readonly key: string;
}

export type Waiter = (error: unknown, signed: Signed | null) => void;

interface SignatureEntry {
  signed: Signed;
  /** True if it was used since the last eviction check. */
  used: boolean;
}

export interface SignaturesParts {
  readonly signers: readonly Signer[];
  readonly capacity: number;
  readonly most: number;
  /** Maximum number of concurrent signatures, because the threads that sign compete for CPUs with those that answer. */
  readonly atOnce: number;
  readonly clock: Clock;
  /** Called with the difference whenever the number of signatures in progress changes. */
  readonly onBusy: (change: number) => void;
}

export function wanted(set: SignedSet, zone: WireName): WantedSignature {
  const records = signedRecords(set);
  const key = hash('sha256', Buffer.concat([zone, records]), 'latin1');
  return { set, records, zone, key };
}

/**
 * One worker's signatures. When the store is full, the least recently used ones are evicted. Denials are stored only
 * when they are made for the second time.
 */
export class Signatures {
  readonly #parts: SignaturesParts;
  readonly #entries = new Map<string, SignatureEntry>();
  readonly #making = new Map<string, Waiter[]>();
  /** Signatures to make, in order of arrival; those before `#next` have already started. */
  #queue: WantedSignature[] = [];
  #next = 0;
  #running = 0;
  readonly #made = new Uint32Array(MADE);
  readonly #ofKeys: readonly Signer[];
  readonly #ofRest: readonly Signer[];

  constructor(parts: SignaturesParts) {
    this.#parts = parts;
    this.#ofKeys = signersOf(parts.signers, true);
    this.#ofRest = signersOf(parts.signers, false);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns valid signatures or null. Old ones are returned while new ones are being made. */
  find(what: WantedSignature): Signed | null {
    const entry = this.#entries.get(what.key);
    if (entry === undefined) return null;
    const now = this.#now();
    const { signed } = entry;
    if (now < signed.inception || now > signed.expiration - LAST) return null;
    entry.used = true;
    if (now > renewalOf(signed) && this.takes([what])) this.make(what, ignore);
    return signed;
  }

  /**
   * True if all of these can be made, because there is enough room or they are already in progress. A single one is
   * always accepted.
   */
  takes(all: readonly WantedSignature[]): boolean {
    const { size } = this.#making;
    if (size === 0) return true;
    let more = 0;
    for (const { key } of all) if (!this.#making.has(key)) more++;
    return size + more <= this.#parts.most;
  }

  /** Makes a signature and calls `waiter` in a later turn of the event loop. */
  make(what: WantedSignature, waiter: Waiter): void {
    const { key } = what;
    const waiters = this.#making.get(key);
    if (waiters !== undefined) {
      if (waiter !== ignore) waiters.push(waiter);
      return;
    }
    this.#making.set(key, [waiter]);
    this.#parts.onBusy(1);
    this.#queue.push(what);
    this.#begin();
  }

  #begin(): void {
    while (this.#running < this.#parts.atOnce && this.#next < this.#queue.length)
      this.#sign(this.#queue[this.#next++]!);
    if (this.#next < this.#queue.length) return;
    this.#queue = [];
    this.#next = 0;
  }

  #sign(what: WantedSignature): void {
    const { set, records, zone } = what;
    this.#running++;
    const now = this.#now();
    const validity = { inception: now - BEFORE, expiration: now + AFTER };
    const signers = set.type === TYPE.DNSKEY ? this.#ofKeys : this.#ofRest;
    signSet(set, records, zone, signers, validity).settle(
      (made) => this.#end(what, null, { records: made, ...validity }),
      (error) => this.#end(what, error, null),
      undefined,
    );
  }

  #end({ key, set: { type } }: WantedSignature, error: unknown, signed: Signed | null): void {
    const waiters = this.#making.get(key)!;
    this.#making.delete(key);
    this.#running--;
    this.#begin();
    this.#parts.onBusy(-1);
    if (signed !== null && (type !== TYPE.NSEC || this.#wasMade(key))) this.#put(key, signed);
    for (const waiter of waiters) waiter(error, signed);
  }

  #put(key: string, signed: Signed): void {
    const entries = this.#entries;
    const known = entries.get(key);
    if (known !== undefined) {
      known.signed = signed;
      return;
    }
    if (this.#parts.capacity === 0) return;
    if (entries.size >= this.#parts.capacity) this.#makeRoom();
    entries.set(key, { signed, used: false });
  }

  /**
   * Removes several of the oldest unused entries at once, because every search for a Map's first entry skips all
   * deleted entries before it.
   */
  #makeRoom(): void {
    const most = Math.ceil(0.99 * this.#parts.capacity) - 1;
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= most) return;
      this.#entries.delete(key);
      if (!entry.used) continue;
      // It is spared for another round.
      entry.used = false;
      this.#entries.set(key, entry);
    }
  }

  /**
   * True if this was probably made before. There is no limit on missing names, and most are queried only once. Their
   * entries would stay unused and burden the garbage collector.
   */
  #wasMade(key: string): boolean {
    const place = (key.charCodeAt(0) | (key.charCodeAt(1) << 8)) & (MADE - 1);
    const mark = key.charCodeAt(2) | (key.charCodeAt(3) << 8) | (key.charCodeAt(4) << 16) | 1;
    const was = this.#made[place] === mark;
    this.#made[place] = mark;
    return was;
  }

  #now(): number {
    return Math.floor(this.#parts.clock.wall() / 1000);
  }
}

function ignore(): void {
  // This signature was made in advance, so a query that needs it will get the error itself.
}
