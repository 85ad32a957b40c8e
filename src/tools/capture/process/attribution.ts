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
import { addressOf, type SeenExchange, type SeenLookup } from '../pair/seen-exchange.ts';
import { unknownAsker, type Asker, type WhyUnknown } from '../pair/asker.ts';
import {
  certain,
  isDecided,
  isProved,
  KnownSockets,
  nothing,
  servedUntilMs,
  SETTLE_MS,
  waitedUntilMs,
  type SocketFinding,
} from './known-sockets.ts';
import type { NetworkSpaces } from './network-spaces.ts';
import type { SentQueries } from './sent-queries.ts';
import { ServerQueries } from './server-queries.ts';
import type { SocketHolders } from './socket-holders.ts';

/** The number of exchanges that have a process, and of those that do not, by reason. */
export interface AttributionCounts {
  readonly attributed: number;
  readonly unknown: Readonly<Partial<Record<WhyUnknown, number>>>;
}

/** Receives exchanges and lookups whose processes are known, in the order in which they ended. */
export interface AttributedEvents {
  ended(exchange: SeenExchange): void;
  lookup(lookup: SeenLookup): void;
}

/** An exchange or a lookup that waits for sockets to be looked up. */
interface Unsettled {
  readonly ended: SeenExchange | SeenLookup;
  /** The server's processes. Null for a lookup, and for an exchange without a reply. */
  readonly answerer: SocketFinding | null;
}

export interface Translated {
  readonly client: Peer;
  readonly server: Peer;
}

export interface TranslationTable {
  find(protocol: 'udp' | 'tcp', client: Peer, server: Peer): Translated | null;
  close(): void;
}

export interface AttributionParts {
  readonly spaces: NetworkSpaces;
  readonly holders: SocketHolders;
  /** Notes from kernel programs, or null if there are none. */
  readonly sent: SentQueries | null;
  /** Connection tracking in the namespaces that may translate. */
  readonly translations: readonly TranslationTable[];
  /** True if the queries that servers send to answer a lookup are wanted. */
  readonly isUpstreamShown: boolean;
  /** CLOCK_REALTIME in milliseconds, with fractions. */
  readonly nowMs: () => number;
  /** CLOCK_BOOTTIME in milliseconds, with fractions. */
  readonly sinceBootMs: () => number;
}

export class Attribution {
  readonly #parts: AttributionParts;
  readonly #events: AttributedEvents;
  readonly #sockets: KnownSockets;
  #unsettled: Unsettled[] = [];
  #timer: NodeJS.Timeout | null = null;
  /** The difference between both clocks. It changes when the machine's time is set, so `refresh` updates it. */
  #bootMs: number;
  readonly #queries = new ServerQueries();
  readonly #counts: { attributed: number; unknown: Partial<Record<WhyUnknown, number>> } = {
    attributed: 0,
    unknown: {},
  };

  constructor(parts: AttributionParts, events: AttributedEvents) {
    this.#parts = parts;
    this.#events = events;
    this.#sockets = new KnownSockets(parts.spaces, parts.holders, parts.nowMs);
    this.#bootMs = parts.sinceBootMs() - parts.nowMs();
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
    const { spaces, nowMs, sinceBootMs } = this.#parts;
    spaces.refresh();
    this.#bootMs = sinceBootMs() - nowMs();
  }

  /** Call as soon as the query is seen. */
  begun(exchange: SeenExchange): void {
    const { protocol, client, sentMs, id } = exchange;
    const server = serverOf(exchange);
    exchange.sender =
      this.#noted(protocol, client, server, sentMs, id) ??
      this.#sockets.at({ protocol, local: client, remote: server, mayListen: false }, sentMs, true);
    this.#settleSoon();
  }

  /** Call this when the exchange has ended. It is passed on at once, or after its sockets have been looked up. */
  ended(exchange: SeenExchange): void {
    const sender = exchange.sender as SocketFinding | null | undefined;
    const answerer = exchange.ending === 'answered' ? this.#answerer(exchange) : null;
    const isSettled =
      this.#unsettled.length === 0 &&
      (sender === null || sender === undefined || isDecided(sender)) &&
      (answerer === null || isDecided(answerer));
    if (isSettled) this.#exchange(exchange, answerer);
    else this.#unsettled.push({ ended: exchange, answerer });
    this.#settleSoon();
  }

  /** Call this for a lookup that has ended, after its exchanges. */
  lookup(lookup: SeenLookup): void {
    if (this.#unsettled.length === 0) this.#events.lookup(lookup);
    else this.#unsettled.push({ ended: lookup, answerer: null });
  }

  /** Passes on everything that has ended. Call this at the end of the capture. */
  settle(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#sockets.settle();
    const unsettled = this.#unsettled;
    this.#unsettled = [];
    for (const { ended, answerer } of unsettled)
      if ('exchanges' in ended) this.#events.lookup(ended);
      else this.#exchange(ended, answerer);
  }

  /** Returns the sender of a packet that has just been seen, and that opens a connection. */
  sender(protocol: 'udp' | 'tcp', local: Peer, remote: Peer, sentMs: number): Asker {
    const found =
      this.#noted(protocol, local, remote, sentMs, 0) ??
      this.#sockets.at({ protocol, local, remote, mayListen: false }, sentMs);
    return found.asker;
  }

  /** Returns the server that accepts connections or answers at this address. */
  receiver(protocol: 'udp' | 'tcp', server: Peer, client: Peer, atMs: number): Asker {
    return this.#sockets.at({ protocol, local: server, remote: client, mayListen: true }, atMs)
      .asker;
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
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

  /** @param id the DNS message's ID, or 0 if the packet opens a connection */
  #noted(
    protocol: 'udp' | 'tcp',
    local: Peer,
    remote: Peer,
    sentMs: number,
    id: number,
  ): SocketFinding | null {
    const { sent, holders } = this.#parts;
    const noted = sent?.find(protocol, local, remote, id, sentMs + this.#bootMs) ?? null;
    if (noted === null) return null;
    return noted === 'several' ? nothing('several') : certain(holders.describe(noted));
  }

  #answerer(exchange: SeenExchange): SocketFinding {
    const { protocol, client, sentMs, stray, isStrayReply = false } = exchange;
    if (stray !== null && isStrayReply)
      return this.#sockets.at({ protocol, local: stray, remote: client, mayListen: true }, sentMs);
    const last = exchange.hops.at(-1);
    const local = serverOf(last ?? exchange);
    const end = { protocol, local, remote: last?.client ?? client, mayListen: true };
    const found = this.#sockets.at(end, sentMs, true);
    if (found.asker.why !== 'elsewhere' || last !== undefined) return found;
    const behind = this.translated(protocol, client, local);
    if (behind === null) return found;
    exchange.behind = behind.server;
    const place = { local: behind.server, remote: behind.client };
    return this.#sockets.at({ protocol, ...place, mayListen: true }, sentMs, true);
  }

  #settleSoon(): void {
    if (this.#sockets.areDue) this.#timer ??= setTimeout(() => this.settle(), SETTLE_MS);
  }

  #exchange(exchange: SeenExchange, answerer: SocketFinding | null): void {
    const sender = (exchange.sender ?? nothing('unseen')) as SocketFinding;
    exchange.sender = null;
    const { sentMs, repliedMs } = exchange;
    exchange.asker = askerOf(sender, sentMs, waitedUntilMs(sentMs, repliedMs));
    exchange.answerer =
      answerer === null ? null : askerOf(answerer, sentMs, servedUntilMs(repliedMs ?? sentMs));
    if (this.#parts.isUpstreamShown) {
      exchange.upstream = this.#queries.of(exchange);
      this.#queries.add(exchange);
    }
    const { why } = exchange.asker;
    if (why === null) this.#counts.attributed++;
    else this.#counts.unknown[why] = (this.#counts.unknown[why] ?? 0) + 1;
    this.#events.ended(exchange);
  }
}

function serverOf({ server }: Pick<SeenExchange, 'server'>): Peer {
  return server.host === undefined ? server : { address: addressOf(server), port: server.port };
}

function askerOf(finding: SocketFinding, sentMs: number, usedUntilMs: number): Asker {
  const { asker } = finding;
  return asker.why !== null || isProved(finding, sentMs, usedUntilMs)
    ? asker
    : unknownAsker('closed');
}
