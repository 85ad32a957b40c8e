/**
 * Notes about queries and connections from kernel programs, which include the sending process. A note arrives before
 * the capture sees the packet.
 */
import { hashBytes, hashPair } from '../../../server/base/hash.ts';
import { parseAddress } from '../../../server/base/ip.ts';
import { RecentlyUsed } from '../../../server/base/recently-used.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import type { Asker } from '../pair/asker.ts';

/** A query or a TCP connection at the time it is sent. */
export interface SentNote {
  readonly protocol: 'udp' | 'tcp';
  /** Contains both addresses, which are 4 or 16 bytes each. */
  readonly bytes: Uint8Array;
  readonly sourceAt: number;
  readonly targetAt: number;
  readonly addressSize: 4 | 16;
  readonly sourcePort: number;
  readonly targetPort: number;
  /** The DNS message's ID; 0: a connection. */
  readonly id: number;
  /** The halves of the socket's cookie. */
  readonly cookieHigh: number;
  readonly cookieLow: number;
  /** The process that opened the socket or last connected it, or 0 if unknown. */
  readonly pid: number;
  /** The process that sent the packet, or 0 if unknown. */
  readonly senderPid: number;
  /** The time at which the packet was sent, in milliseconds since boot. */
  readonly sentBootMs: number;
  /** The time at which `pid` opened or connected the socket, likewise. */
  readonly notedBootMs: number;
  readonly cgroup: bigint;
  /** The name of the thread that opened or connected the socket. */
  readonly command: string;
}

export interface NoteSource {
  /** Notes are valid only during the call. */
  drain(take: (note: SentNote) => void): void;
  close(): void;
}

/** A socket and the processes that use it. The same object for each of their notes. */
export interface QuerySender {
  /** Two processes if one opened the socket and another used it. */
  readonly pids: readonly number[];
  /** Times at which they used it, in milliseconds since boot. A process that started later has taken over the ID. */
  readonly usedBootMs: readonly number[];
  readonly cgroup: bigint;
  readonly command: string;
  /** Null until it is described (`SocketHolders.describe`). */
  asker: Asker | null;
}

interface NotedSender extends QuerySender {
  readonly cookieHigh: number;
  readonly cookieLow: number;
  readonly pid: number;
  readonly senderPid: number;
}

/**
 * In milliseconds. A packet may wait in a queue of the kernel after its note has been written. Older notes describe an
 * earlier packet with the same ports and ID. The socket of an old connection is looked up as without a note.
 */
const DELAY_MS = 5000;
/** The oldest are overwritten first. */
const NOTES_MAX = 100_000;
/** A power of two. */
const BUCKETS = 131_072;
/** The number of senders that are not created again for each of their notes. */
const SENDERS_MAX = 65_536;
/** The number of parsed addresses. When it is reached, all are dropped. */
const ADDRESSES_MAX = 10_000;
/** Offsets in the key of a note and its size in bytes. The family is part of the protocol's byte. */
const KEY = { PROTOCOL: 0, ID: 2, PORTS: 4, ADDRESSES: 8, SIZE: 40 } as const;

export class SentQueries {
  readonly #source: NoteSource;
  /**
   * Notes are numbered from 1, and note n is in place n % NOTES_MAX. There may be tens of thousands per second, and as
   * objects they would keep the garbage collector busy. The last place has the key that is being looked up.
   */
  readonly #keys = new Uint8Array((NOTES_MAX + 1) * KEY.SIZE);
  readonly #senders = Array.from<NotedSender | 'several' | null>({ length: NOTES_MAX }).fill(null);
  /** The newest note of each bucket, and for each note the one before it in its bucket. 0: none. */
  readonly #newest = new Float64Array(BUCKETS);
  readonly #before = new Float64Array(NOTES_MAX);
  /** In milliseconds since boot. */
  readonly #sentMs = new Float64Array(NOTES_MAX);
  /** By cookie and processes. */
  readonly #known = new RecentlyUsed<number, NotedSender>(SENDERS_MAX);
  readonly #addresses = new Map<string, Uint8Array | null>();
  #stored = 0;

  constructor(source: NoteSource) {
    this.#source = source;
  }

  /** Call before reading packets. */
  drain(): void {
    this.#source.drain(this.#take);
  }

  /**
   * The sender, or null if there is no note. There are several if namespaces that cannot be distinguished have sockets
   * with the same addresses.
   * @param id the message's ID, or 0 for a connection
   * @param sentBootMs when the packet was sent, in milliseconds since boot
   */
  find(
    protocol: 'udp' | 'tcp',
    client: Peer,
    server: Peer,
    id: number,
    sentBootMs: number,
  ): QuerySender | 'several' | null {
    const [source, target] = [this.#bytesOf(client.address), this.#bytesOf(server.address)];
    if (source === null || target === null || source.length !== target.length) return null;
    const at = NOTES_MAX * KEY.SIZE;
    const end = this.#writeKey(at, protocol, source.length, client.port, server.port, id);
    this.#keys.set(source, at + KEY.ADDRESSES);
    this.#keys.set(target, at + KEY.ADDRESSES + source.length);
    const number = this.#find(at, end, this.#bucketOf(at, end), sentBootMs);
    return number === 0 ? null : this.#senders[number % NOTES_MAX]!;
  }

  close(): void {
    this.#source.close();
  }

  readonly #take = (note: SentNote): void => {
    if (note.pid === 0 && note.senderPid === 0) return;
    const { protocol, bytes, sourceAt, targetAt, addressSize: size } = note;
    const number = this.#stored + 1;
    const place = number % NOTES_MAX;
    const at = place * KEY.SIZE;
    const end = this.#writeKey(at, protocol, size, note.sourcePort, note.targetPort, note.id);
    for (let i = 0; i < size; i++) {
      this.#keys[at + KEY.ADDRESSES + i] = bytes[sourceAt + i]!;
      this.#keys[at + KEY.ADDRESSES + size + i] = bytes[targetAt + i]!;
    }
    // From here on, the note that was in this place is not found.
    this.#stored = number;
    const bucket = this.#bucketOf(at, end);
    const same = this.#find(at, end, bucket, note.sentBootMs);
    const before = same === 0 ? null : this.#senders[same % NOTES_MAX]!;
    const sender = this.#senderOf(note);
    const isAmbiguous =
      before === 'several' ||
      (before !== null &&
        protocol === 'udp' &&
        (before.cookieLow !== sender.cookieLow || before.cookieHigh !== sender.cookieHigh));
    this.#senders[place] = isAmbiguous ? 'several' : sender;
    this.#sentMs[place] = note.sentBootMs;
    this.#before[place] = this.#newest[bucket]!;
    this.#newest[bucket] = number;
  };

  /** Writes all of the key but the addresses. Returns its end. */
  #writeKey(
    at: number,
    protocol: 'udp' | 'tcp',
    addressSize: number,
    sourcePort: number,
    targetPort: number,
    id: number,
  ): number {
    const keys = this.#keys;
    const tail = protocol === 'udp' ? id : 0;
    keys[at + KEY.PROTOCOL] = addressSize | (protocol === 'udp' ? 1 : 0);
    keys[at + KEY.ID] = tail >> 8;
    keys[at + KEY.ID + 1] = tail & 0xff;
    keys[at + KEY.PORTS] = sourcePort >> 8;
    keys[at + KEY.PORTS + 1] = sourcePort & 0xff;
    keys[at + KEY.PORTS + 2] = targetPort >> 8;
    keys[at + KEY.PORTS + 3] = targetPort & 0xff;
    return at + KEY.ADDRESSES + 2 * addressSize;
  }

  #bucketOf(at: number, end: number): number {
    return hashBytes(this.#keys, at, end) & (BUCKETS - 1);
  }

  /** The number of the newest note with this key, or 0 if there is none at about this time. */
  #find(at: number, end: number, bucket: number, sentBootMs: number): number {
    const oldest = this.#stored - NOTES_MAX;
    let number = this.#newest[bucket]!;
    while (number > 0 && number > oldest) {
      const place = number % NOTES_MAX;
      if (this.#isSame(place * KEY.SIZE, at, end))
        return Math.abs(sentBootMs - this.#sentMs[place]!) <= DELAY_MS ? number : 0;
      number = this.#before[place]!;
    }
    return 0;
  }

  #isSame(other: number, at: number, end: number): boolean {
    const keys = this.#keys;
    for (let from = at; from < end; from++)
      if (keys[other + from - at] !== keys[from]) return false;
    return true;
  }

  #senderOf(note: SentNote): NotedSender {
    const { cookieHigh, cookieLow, pid, senderPid } = note;
    const key = hashPair(hashPair(cookieLow, cookieHigh), hashPair(pid, senderPid));
    const known = this.#known.get(key);
    if (
      known !== undefined &&
      known.cookieLow === cookieLow &&
      known.cookieHigh === cookieHigh &&
      known.pid === pid &&
      known.senderPid === senderPid
    )
      return known;
    const { cgroup, command, sentBootMs, notedBootMs } = note;
    const isSame = pid === senderPid;
    const used = [
      { pid: senderPid, atMs: isSame ? notedBootMs : sentBootMs },
      ...(isSame ? [] : [{ pid, atMs: notedBootMs }]),
    ].filter((each) => each.pid > 0);
    const pids = used.map((each) => each.pid);
    const usedBootMs = used.map(({ atMs }) => atMs);
    const ids = { cookieHigh, cookieLow, pid, senderPid };
    const made = { ...ids, pids, usedBootMs, cgroup, command, asker: null };
    this.#known.set(key, made);
    return made;
  }

  #bytesOf(address: string): Uint8Array | null {
    const known = this.#addresses.get(address);
    if (known !== undefined) return known;
    if (this.#addresses.size >= ADDRESSES_MAX) this.#addresses.clear();
    const bytes = parseAddress(address);
    this.#addresses.set(address, bytes);
    return bytes;
  }
}
