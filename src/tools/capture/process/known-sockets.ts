/**
 * Finds the sockets at the ends of connections, and remembers during which time each is known to have existed.
 *
 * A lookup takes a quarter of the time that everything else about an exchange takes. If a socket sends query after
 * query, one lookup every few milliseconds therefore has to prove all of them.
 */
import { FIXED_HASH_START, nextFixedHash } from '../../../server/base/fixed-hash.ts';
import { hashPair } from '../../../server/base/hash.ts';
import { RecentlyUsed } from '../../../server/base/recently-used.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import { unknownAsker, type Asker, type SeenProcess, type WhyUnknown } from '../pair/asker.ts';
import type { KernelSocket, NetworkSpace, NetworkSpaces } from './network-spaces.ts';
import { withOthers, type SocketHolders } from './socket-holders.ts';

/** The number of connection ends for which sockets are remembered. */
const KNOWN_MAX = 50_000;
/**
 * A socket is busy after this many lookups, each within BUSY_GAP_MS of the one before. To resolve one name, a program
 * sends at most 14 queries on one socket (musl with six search domains). Each of them is looked up at once.
 */
const BUSY_LOOKUPS = 16;
/** In milliseconds. Twice SETTLE_MS, so that a socket that sends all the time stays busy. */
const BUSY_GAP_MS = 40;
/** In milliseconds. The time until busy sockets are looked up again, which is not noticed by a person who watches. */
export const SETTLE_MS = 20;

/**
 * In milliseconds. A socket that is found this soon after a query without a reply, or after a reply, is the one that
 * sent it. Unbound's shortest timeout is 50 ms (RTT_MIN_TIMEOUT), and no known resolver has a shorter one.
 */
const STAYS_MS = 50;

/** A listening socket has no remote end. */
const ANY_4: Peer = { address: '0.0.0.0', port: 0 };
const ANY_6: Peer = { address: '::', port: 0 };

export interface SocketFinding {
  readonly asker: Asker;
  /** The socket that proves them (`isProved`), or null if they need no proof. */
  readonly socket: KnownSocket | null;
}

/** Since when a socket has been known, at any of its ends, with the same processes. */
interface Since {
  readonly firstMs: number;
  readonly asker: Asker;
}

export interface ConnectionEnd {
  readonly protocol: 'udp' | 'tcp';
  readonly local: Peer;
  readonly remote: Peer;
  /** True if a listening socket may have accepted the connection. */
  readonly mayListen: boolean;
}

/** A socket that existed from `firstMs` to `lastMs`, and perhaps for longer. */
export class KnownSocket implements SocketFinding {
  readonly end: ConnectionEnd;
  readonly space: string;
  readonly cookie: bigint;
  readonly firstMs: number;
  lastMs: number;
  asker: Asker;
  /** The number of lookups without a pause. */
  run = 0;
  /** True until `settle` looks it up. */
  isDue = false;

  constructor(
    end: ConnectionEnd,
    space: string,
    cookie: bigint,
    times: { readonly firstMs: number; readonly lastMs: number },
    asker: Asker,
  ) {
    this.end = end;
    this.space = space;
    this.cookie = cookie;
    this.firstMs = times.firstMs;
    this.lastMs = times.lastMs;
    this.asker = asker;
  }

  get socket(): this {
    return this;
  }
}

export class KnownSockets {
  readonly #spaces: NetworkSpaces;
  readonly #holders: SocketHolders;
  readonly #nowMs: () => number;
  readonly #known = new RecentlyUsed<number, KnownSocket>(KNOWN_MAX);
  /** By cookie. A server's socket has an end for each of its clients. */
  readonly #since = new RecentlyUsed<bigint, Since>(KNOWN_MAX);
  #due: KnownSocket[] = [];

  /** @param nowMs the packets' clock in milliseconds, with fractions */
  constructor(spaces: NetworkSpaces, holders: SocketHolders, nowMs: () => number) {
    this.#spaces = spaces;
    this.#holders = holders;
    this.#nowMs = nowMs;
  }

  get areDue(): boolean {
    return this.#due.length > 0;
  }

  /**
   * Returns the processes of the socket at a local end.
   * @param sentMs when the packet was sent
   * @param mayWait true if a lookup by `settle` is soon enough
   */
  at(end: ConnectionEnd, sentMs: number, mayWait = false): SocketFinding {
    const { local } = end;
    const space = this.#spaces.of(local.address);
    if (typeof space === 'string')
      return nothing(space === 'elsewhere' && this.#spaces.refused ? 'refused' : space);
    const key = keyOf(end);
    const known = this.#knownAt(key, end);
    if (known !== null && known.firstMs <= sentMs) {
      // Found after this packet was sent, while looking up another one that was read with it.
      if (known.lastMs >= sentMs) return known;
      if (mayWait && this.#waits(known, sentMs)) return known;
    }
    const beforeMs = this.#nowMs();
    const found = socketIn(space, end);
    const afterMs = this.#nowMs();
    if (found === null) {
      if (known !== null) this.#known.delete(key);
      return nothing('closed');
    }
    const asker = this.#holders.find(found, space.name, sentMs, afterMs, isServer(end, found));
    if (known !== null && isSameSocket(known, space, found)) {
      if (asker.why === 'busy' && known.asker.why === null) return certain(asker);
      if (haveSameProcesses(known.asker, asker)) {
        known.run = beforeMs - known.lastMs > BUSY_GAP_MS ? 0 : known.run + 1;
        known.lastMs = beforeMs;
        known.asker = asker;
        return known;
      }
    }
    const since = this.#since.get(found.cookie);
    const isLonger = since !== undefined && haveSameProcesses(since.asker, asker);
    const firstMs = isLonger ? since.firstMs : afterMs;
    if (!isLonger) this.#since.set(found.cookie, { firstMs, asker });
    const times = { firstMs, lastMs: beforeMs };
    const made = new KnownSocket(end, space.name, found.cookie, times, asker);
    this.#known.set(key, made);
    if (known?.cookie !== found.cookie || known.firstMs > sentMs) return made;
    // It was passed on since the last lookup, before or after this packet.
    const both = processesOfBoth(known.asker, asker);
    return both === null ? made : certain({ ...asker, processes: both });
  }

  /** Looks up the busy sockets, which proves their packets if they and their processes are still the same. */
  settle(): void {
    const due = this.#due;
    this.#due = [];
    for (const known of due) {
      known.isDue = false;
      const { end } = known;
      const space = this.#spaces.of(end.local.address);
      const beforeMs = this.#nowMs();
      const found = typeof space === 'string' ? null : socketIn(space, end);
      if (found !== null && isSameSocket(known, space as NetworkSpace, found)) {
        const nowMs = this.#nowMs();
        const asker = this.#holders.find(
          found,
          known.space,
          known.lastMs,
          nowMs,
          isServer(end, found),
        );
        if (haveSameProcesses(known.asker, asker)) {
          known.lastMs = beforeMs;
          continue;
        }
      }
      const key = keyOf(end);
      if (this.#known.get(key) === known) this.#known.delete(key);
    }
  }

  #knownAt(key: number, end: ConnectionEnd): KnownSocket | null {
    const known = this.#known.get(key);
    return known !== undefined && isSameEnd(known.end, end) ? known : null;
  }

  /** True if the socket is busy, so that it will be looked up by `settle`. */
  #waits(known: KnownSocket, sentMs: number): boolean {
    if (known.isDue) return true;
    if (known.run < BUSY_LOOKUPS || sentMs - known.lastMs > BUSY_GAP_MS) return false;
    if (known.asker.why === 'busy') return false;
    known.isDue = true;
    this.#due.push(known);
    return true;
  }
}

/** True if no further lookup is needed to tell whether the finding is proven. */
export function isDecided({ socket }: SocketFinding): boolean {
  return socket === null || !socket.isDue;
}

/**
 * True if the socket existed when the packet was sent: it was found both before and after, or while its program was
 * still using it.
 * @param usedUntilMs until when that is certain (`waitedUntilMs`, `servedUntilMs`)
 */
export function isProved({ socket }: SocketFinding, sentMs: number, usedUntilMs: number): boolean {
  if (socket === null) return true;
  const { firstMs, lastMs } = socket;
  return lastMs >= sentMs && (firstMs <= sentMs || firstMs <= usedUntilMs);
}

export function waitedUntilMs(sentMs: number, repliedMs: number | null): number {
  return repliedMs ?? sentMs + STAYS_MS;
}

/** Until when a server that has replied keeps its socket. */
export function servedUntilMs(repliedMs: number): number {
  return repliedMs + STAYS_MS;
}

/** A finding that needs no proof. */
export function certain(asker: Asker): SocketFinding {
  return { asker, socket: null };
}

export function nothing(why: WhyUnknown): SocketFinding {
  return certain(unknownAsker(why));
}

function socketIn({ sockets }: NetworkSpace, end: ConnectionEnd): KernelSocket | null {
  const { protocol, local, remote, mayListen } = end;
  const found = sockets.find(protocol, local, remote);
  if (!mayListen) return found?.listens === true ? null : found;
  // An accepted connection that has since been closed. The listening process accepted it.
  if (protocol === 'tcp' && (found === null || found.inode === 0))
    return sockets.find(protocol, local, local.address.includes(':') ? ANY_6 : ANY_4);
  return found;
}

/** False for an accepted connection, which has a socket of its own. */
function isServer({ mayListen, protocol }: ConnectionEnd, { listens }: KernelSocket): boolean {
  return mayListen && (protocol === 'udp' || listens);
}

function isSameSocket(known: KnownSocket, space: NetworkSpace, found: KernelSocket): boolean {
  return known.cookie === found.cookie && known.space === space.name;
}

/** True if both have processes, and the same ones, or if both have none for the same reason. */
function haveSameProcesses(one: Asker, other: Asker): boolean {
  if (one === other) return true;
  if (one.why !== other.why || one.processes.length !== other.processes.length) return false;
  const pids = new Set(other.processes.map(({ pid }) => pid));
  return one.processes.every(({ pid }) => pids.has(pid));
}

/** The processes of both, or null if those of one are unknown. */
function processesOfBoth(one: Asker, other: Asker): readonly SeenProcess[] | null {
  if (one.why !== null || other.why !== null) return null;
  return withOthers(one.processes, other.processes);
}

function isSameEnd(one: ConnectionEnd, other: ConnectionEnd): boolean {
  return (
    one.local.port === other.local.port &&
    one.remote.port === other.remote.port &&
    one.local.address === other.local.address &&
    one.remote.address === other.remote.address &&
    one.protocol === other.protocol &&
    one.mayListen === other.mayListen
  );
}

/** A number, because a string would be created for every packet. Of ends with the same number, one is remembered. */
function keyOf({ protocol, local, remote, mayListen }: ConnectionEnd): number {
  let addresses = FIXED_HASH_START;
  for (let at = 0; at < local.address.length; at++)
    addresses = nextFixedHash(addresses, local.address.charCodeAt(at));
  for (let at = 0; at < remote.address.length; at++)
    addresses = nextFixedHash(addresses, remote.address.charCodeAt(at));
  const kind = (protocol === 'udp' ? 1 : 0) | (mayListen ? 2 : 0);
  return hashPair(nextFixedHash(addresses, kind), (local.port << 16) | remote.port);
}
