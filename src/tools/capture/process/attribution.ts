/**
 * Finds the processes of client and server. While an exchange passes, it looks up the socket of either end in
 * its network namespace, and the processes that hold it.
 *
 * A socket proves something about a packet only if it existed when the packet was sent. That holds if the
 * socket was found before the reply, because a waiting client has not closed it. It also holds if the same
 * socket, by its cookie, was found before and after the packet. Otherwise its port may belong to another
 * process by now, and the exchange has no process.
 */
import type { Peer } from '../../../server/wire/exchange.ts';
import { addressOf, type SeenExchange } from '../pair/seen-exchange.ts';
import { unknownAsker, type Asker, type WhyUnknown } from '../pair/asker.ts';
import type { NetworkSpaces } from './network-spaces.ts';
import type { SentQueries } from './sent-queries.ts';
import type { SocketHolders } from './socket-holders.ts';

/** Ends of connections whose sockets are remembered. */
const KNOWN_MAX = 50_000;

/** A listening socket has no remote end. */
const ANY_4: Peer = { address: '0.0.0.0', port: 0 };
const ANY_6: Peer = { address: '::', port: 0 };

/** The number of exchanges with a process, and of the others by reason. */
export interface AttributionCounts {
  readonly attributed: number;
  readonly unknown: Readonly<Partial<Record<WhyUnknown, number>>>;
}

interface KnownSocket {
  readonly cookie: bigint;
  readonly firstMs: number;
  /** The time of its last sighting. */
  lastMs: number;
  asker: Asker;
}

/** The known facts of a process before the reply. */
interface Finding {
  readonly asker: Asker;
  /** A reply before this time leaves it unproved; -Infinity: it is proved. */
  readonly provedAfterMs: number;
}

/** A connection after address translation. */
export interface Translated {
  readonly client: Peer;
  readonly server: Peer;
}

/** The connection tracking of a network namespace. */
export interface TranslationTable {
  find(protocol: 'udp' | 'tcp', client: Peer, server: Peer): Translated | null;
  close(): void;
}

/** The search in the kernel, and the clock of the packets. */
export interface AttributionParts {
  readonly spaces: NetworkSpaces;
  readonly holders: SocketHolders;
  /** Notes of programs in the kernel; null: none. */
  readonly sent: SentQueries | null;
  /** Connection tracking of the namespaces that may translate. */
  readonly translations: readonly TranslationTable[];
  /** CLOCK_REALTIME in milliseconds, with fractions. */
  readonly nowMs: () => number;
}

export class Attribution {
  readonly #parts: AttributionParts;
  readonly #known = new Map<string, KnownSocket>();
  readonly #open = new WeakMap<SeenExchange, Finding>();
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

  /** Call it before a batch of packets is read. */
  ready(): void {
    this.#parts.sent?.drain();
  }

  /** Call it periodically: refreshes the view of the machine. */
  refresh(): void {
    this.#parts.spaces.refresh();
  }

  /** Call it as soon as the query is seen. */
  begun(exchange: SeenExchange): void {
    const { protocol, client, sentMs, id } = exchange;
    const server = { address: addressOf(exchange.server), port: exchange.server.port };
    this.#open.set(exchange, this.sender(protocol, client, server, { sentMs, id }));
  }

  /** Call it when the exchange has ended, before anything of it is shown. */
  ended(exchange: SeenExchange): void {
    const found = this.#open.get(exchange);
    this.#open.delete(exchange);
    const isProved =
      exchange.repliedMs === null || exchange.repliedMs >= (found?.provedAfterMs ?? 0);
    const asker = found === undefined ? unknownAsker('unseen') : found.asker;
    exchange.asker = isProved || asker.why !== null ? asker : unknownAsker('closed');
    exchange.answerer = exchange.ending === 'answered' ? this.#answerer(exchange) : null;
    const { why } = exchange.asker;
    if (why === null) this.#counts.attributed++;
    else this.#counts.unknown[why] = (this.#counts.unknown[why] ?? 0) + 1;
  }

  /**
   * The sender of a packet that was seen just now.
   * @param id of the DNS message; 0: it opens a connection
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

  /** The server that accepts or answers at this address. */
  receiver(protocol: 'udp' | 'tcp', server: Peer, client: Peer, atMs: number): Asker {
    return this.#look(protocol, server, client, atMs, true).asker;
  }

  close(): void {
    this.#parts.sent?.close();
    this.#parts.spaces.close();
    for (const each of this.#parts.translations) each.close();
  }

  /**
   * The address after translation, from the kernel's connection tracking; null: not translated, or not
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
        // Not permitted, or the kernel has no connection tracking.
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
      return nothing(space === 'elsewhere' && spaces.refused !== null ? 'refused' : space);
    const key = `${protocol} ${local.address} ${local.port} ${remote.address} ${remote.port}`;
    const known = this.#known.get(key);
    // Found after this packet was sent, for another one that was read with it.
    if (known !== undefined && known.firstMs <= sentMs && known.lastMs >= sentMs)
      return { asker: known.asker, provedAfterMs: -Infinity };
    const beforeMs = nowMs();
    let found = space.sockets.find(protocol, local, remote);
    // An accepted connection that was closed: the listening process accepted it.
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
