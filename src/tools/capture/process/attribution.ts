/**
 * Finds the client and server processes. While an exchange passes, looks up each end's socket in its network namespace,
 * and the processes that hold it.
 *
 * A socket only proves something about a packet if it existed when the packet was sent. That is the case if the socket
 * was found before the reply, because a waiting client has not closed it. It is also the case if the same socket,
 * identified by its cookie, was found both before and after the packet. Otherwise, its port may belong to another
 * process by now, and the exchange gets no process.
 */
import type { Peer } from '../../../server/wire/exchange.ts';
import { addressOf, type SeenExchange } from '../pair/seen-exchange.ts';
import { unknownAsker, type Asker, type WhyUnknown } from '../pair/asker.ts';
import type { NetworkSpaces } from './network-spaces.ts';
import type { SentQueries } from './sent-queries.ts';
import { ServerQueries } from './server-queries.ts';
import type { SocketHolders } from './socket-holders.ts';

/** The number of connection ends for which sockets are remembered. */
const KNOWN_MAX = 50_000;

/** A listening socket has no remote end. */
const ANY_4: Peer = { address: '0.0.0.0', port: 0 };
const ANY_6: Peer = { address: '::', port: 0 };

/** The number of exchanges that have a process, and of those that do not, by reason. */
export interface AttributionCounts {
  readonly attributed: number;
  readonly unknown: Readonly<Partial<Record<WhyUnknown, number>>>;
}

interface KnownSocket {
  readonly cookie: bigint;
  readonly firstMs: number;
  /** The time it was last seen. */
  lastMs: number;
  asker: Asker;
}

/** The known facts about a process before the reply. */
interface Finding {
  readonly asker: Asker;
  /** If a reply arrives before this time, the process remains unproven. -Infinity if it is proven. */
  readonly provedAfterMs: number;
}

/** A connection after address translation. */
export interface Translated {
  readonly client: Peer;
  readonly server: Peer;
}

/** A network namespace's connection tracking. */
export interface TranslationTable {
  find(protocol: 'udp' | 'tcp', client: Peer, server: Peer): Translated | null;
  close(): void;
}

/** Kernel lookups, and the packets' clock. */
export interface AttributionParts {
  readonly spaces: NetworkSpaces;
  readonly holders: SocketHolders;
  /** Notes from kernel programs, or null if there are none. */
  readonly sent: SentQueries | null;
  /** Connection tracking in the namespaces that may translate. */
  readonly translations: readonly TranslationTable[];
  /** CLOCK_REALTIME in milliseconds, with fractions. */
  readonly nowMs: () => number;
}

export class Attribution {
  readonly #parts: AttributionParts;
  readonly #known = new Map<string, KnownSocket>();
  readonly #open = new WeakMap<SeenExchange, Finding>();
  readonly #queries = new ServerQueries();
  readonly #counts: { attributed: number; unknown: Partial<Record<WhyUnknown, number>> } = {
    attributed: 0,
    unknown: {},
  };

  constructor(parts: AttributionParts) {
    this.#parts = parts;
  }

  get counts(): AttributionCounts {
    return this.#counts;
  }

  /** Call before reading a batch of packets. */
  ready(): void {
    this.#parts.sent?.drain();
  }

  /** Call this periodically to refresh the view of the machine. */
  refresh(): void {
    this.#parts.spaces.refresh();
  }

  /** Call as soon as the query is seen. */
  begun(exchange: SeenExchange): void {
    const { protocol, client, sentMs, id } = exchange;
    const server = { address: addressOf(exchange.server), port: exchange.server.port };
    this.#open.set(exchange, this.sender(protocol, client, server, { sentMs, id }));
  }

  /** Call this when the exchange has ended, before showing any of it. */
  ended(exchange: SeenExchange): void {
    const found = this.#open.get(exchange);
    this.#open.delete(exchange);
    const isProved =
      exchange.repliedMs === null || exchange.repliedMs >= (found?.provedAfterMs ?? 0);
    const asker = found === undefined ? unknownAsker('unseen') : found.asker;
    exchange.asker = isProved || asker.why !== null ? asker : unknownAsker('closed');
    exchange.answerer = exchange.ending === 'answered' ? this.#answerer(exchange) : null;
    exchange.upstream = this.#queries.of(exchange);
    this.#queries.add(exchange);
    const { why } = exchange.asker;
    if (why === null) this.#counts.attributed++;
    else this.#counts.unknown[why] = (this.#counts.unknown[why] ?? 0) + 1;
  }

  /**
   * Returns the sender of a packet that has just been seen.
   * @param id the DNS message's ID, or 0 if the packet opens a connection
   */
  sender(
    protocol: 'udp' | 'tcp',
    local: Peer,
    remote: Peer,
    { sentMs, id }: { readonly sentMs: number; readonly id: number },
  ): Finding {
    const { sent, holders } = this.#parts;
    const noted = sent?.find(protocol, local, remote, id) ?? null;
    if (noted === 'several') return nothing('several');
    if (noted !== null)
      return {
        asker: holders.describe(noted, sentMs, this.#parts.nowMs()),
        provedAfterMs: -Infinity,
      };
    return this.#look(protocol, local, remote, sentMs);
  }

  /** Returns the server that accepts connections or answers at this address. */
  receiver(protocol: 'udp' | 'tcp', server: Peer, client: Peer, atMs: number): Asker {
    return this.#look(protocol, server, client, atMs, true).asker;
  }

  close(): void {
    this.#parts.sent?.close();
    this.#parts.spaces.close();
    for (const each of this.#parts.translations) each.close();
  }

  /**
   * The translated address according to the kernel's connection tracking, or null if it is not translated or not
   * tracked here.
   */
  translated(protocol: 'udp' | 'tcp', client: Peer, server: Peer): Translated | null {
    for (const table of this.#parts.translations)
      try {
        const found = table.find(protocol, client, server);
        if (found === null) continue;
        const { address, port } = found.server;
        return address === server.address && port === server.port ? null : found;
      } catch {
        // Access is denied, or the kernel has no connection tracking.
        continue;
      }
    return null;
  }

  #answerer(exchange: SeenExchange): Asker {
    const { protocol, client, sentMs } = exchange;
    const last = exchange.hops.at(-1);
    const host = last?.server ?? exchange.server;
    const server = { address: addressOf(host), port: host.port };
    const asked = this.receiver(protocol, server, last?.client ?? client, sentMs);
    if (asked.why !== 'elsewhere' || last !== undefined) return asked;
    const behind = this.translated(protocol, client, server);
    if (behind === null) return asked;
    exchange.behind = behind.server;
    return this.receiver(protocol, behind.server, behind.client, sentMs);
  }

  #look(
    protocol: 'udp' | 'tcp',
    local: Peer,
    remote: Peer,
    sentMs: number,
    mayListen = false,
  ): Finding {
    const { spaces, holders, nowMs } = this.#parts;
    const space = spaces.of(local.address);
    if (typeof space === 'string')
      return nothing(space === 'elsewhere' && spaces.refused ? 'refused' : space);
    const key = `${protocol} ${local.address} ${local.port} ${remote.address} ${remote.port}`;
    const known = this.#known.get(key);
    // Found after this packet was sent, while looking up another one that was read with it.
    if (known !== undefined && known.firstMs <= sentMs && known.lastMs >= sentMs)
      return { asker: known.asker, provedAfterMs: -Infinity };
    const beforeMs = nowMs();
    let found = space.sockets.find(protocol, local, remote);
    // An accepted connection that has since been closed. The listening process accepted it.
    if (mayListen && protocol === 'tcp' && (found === null || found.inode === 0))
      found = space.sockets.find(protocol, local, local.address.includes(':') ? ANY_6 : ANY_4);
    const afterMs = nowMs();
    if (found === null || (found.listens && !mayListen)) {
      this.#known.delete(key);
      return nothing('closed');
    }
    if (known?.cookie === found.cookie) {
      known.lastMs = beforeMs;
      if (known.asker.why === 'busy')
        known.asker = holders.find(found, space.name, sentMs, afterMs);
      return {
        asker: known.asker,
        provedAfterMs: known.firstMs <= sentMs ? -Infinity : known.firstMs,
      };
    }
    const asker = holders.find(found, space.name, sentMs, afterMs);
    if (this.#known.size >= KNOWN_MAX) this.#known.delete(this.#known.keys().next().value!);
    this.#known.delete(key);
    this.#known.set(key, {
      cookie: found.cookie,
      firstMs: afterMs,
      lastMs: beforeMs,
      asker,
    });
    return { asker, provedAfterMs: afterMs };
  }
}

function nothing(why: WhyUnknown): Finding {
  return { asker: unknownAsker(why), provedAfterMs: -Infinity };
}
