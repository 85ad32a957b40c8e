/** Clients that have a list of servers, or spread their queries over several. */
import {
  isLost,
  sentSpan,
  type SeenExchange,
  type SeenLookup,
} from '../../capture/pair/seen-exchange.ts';
import type { FlowView } from './flow-view.ts';
import type { Observations } from './observations.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import {
  ASKED_AT_ONCE_MS,
  MAX_STAYED,
  MIN_ASKED_OF_LIST,
  MIN_WENT_ON,
} from '../thresholds/silence.ts';

interface AskedServer {
  readonly address: string;
  readonly asked: number;
}

/** The use of servers by their clients, by client: a capture may have thousands of both. */
export class ServerLists {
  readonly #observed: Observations;
  readonly #affected: ReadonlyMap<string, readonly SeenLookup[]>;
  readonly #losses: ReadonlyMap<string, readonly SeenExchange[]>;
  readonly #flows: ReadonlyMap<string, readonly FlowView[]>;
  readonly #answering = new Map<string, readonly AskedServer[]>();

  constructor(observed: Observations) {
    this.#observed = observed;
    this.#affected = Map.groupBy(observed.affected, ({ client }) => client);
    this.#losses = Map.groupBy(observed.losses, ({ client }) => client.address);
    this.#flows = Map.groupBy(observed.flows.list, ({ client }) => client);
  }

  answeredElsewhere(client: string, server: string): readonly AskedServer[] {
    let answering = this.#answering.get(client);
    if (answering === undefined) {
      const { servers } = this.#observed.clients.get(client) ?? { servers: [] };
      answering = [...servers].flatMap(([address, { asked, lost }]) =>
        asked - lost >= MIN_CASES ? [{ address, asked }] : [],
      );
      this.#answering.set(client, answering);
    }
    return answering.filter(({ address }) => address !== server);
  }

  /**
   * True if the client spreads its queries over several servers, as forwarders and caches do, and
   * Services if the capture shows only pods. A client that tries the next server of its resolv.conf
   * queries that one as often, and no third, or retries there.
   */
  asksInTurn(client: string, server: string): boolean {
    if (this.#goesOn(client, server)) return false;
    const others = this.answeredElsewhere(client, server);
    const asked = this.#asked(client, server);
    return (
      others.length >= 2 ||
      others.some(
        (other) =>
          other.asked >= 2 * asked || this.#askedBothWhenWell(client, [server, other.address]),
      )
    );
  }

  /**
   * True if the client has a list of servers, and this one, which leaves queries without replies, is
   * the first: it began with it, and used one other at most as often, for unanswered queries. Or it
   * used no other until several names had failed, and then avoids it, as c-ares does. A client whose
   * queries reach one of several pods meets the others from the beginning, and all of them.
   */
  hasItFirst(client: string, server: string): boolean {
    const others = this.answeredElsewhere(client, server);
    if (others.length > 0 && this.#goesOn(client, server)) return true;
    if (others.length !== 1) return false;
    const flows = this.#flows.get(client) ?? [];
    const elsewhereMs = flows.reduce(
      (least, flow) => (flow.server === server ? least : Math.min(least, flow.firstMs)),
      Infinity,
    );
    const lost = this.#lost(client, [server]).filter(
      ({ sentMs }) => sentMs < elsewhereMs + ASKED_AT_ONCE_MS,
    );
    if (lost.length === 0) return false;
    const asked = this.#asked(client, server);
    if (asked >= MIN_ASKED_OF_LIST && others[0]!.asked <= asked) return true;
    const answeredAlone = flows
      .filter((flow) => flow.server === server && flow.firstReplyMs < elsewhereMs)
      .reduce((sum, flow) => sum + flow.asked - flow.lost, 0);
    return new Set(lost.map(({ name }) => name)).size + answeredAlone >= MIN_ASKED_OF_LIST;
  }

  #asked(client: string, server: string): number {
    return this.#observed.clients.get(client)?.servers.get(server)?.asked ?? 0;
  }

  #lost(client: string, servers: readonly string[]): readonly SeenExchange[] {
    const theirs = this.#losses.get(client) ?? [];
    return theirs.filter((loss) => servers.includes(loss.server.address));
  }

  /**
   * True if the client retries lost queries at another server with the same ids: it follows a list of
   * servers. Behind a Service address, a retry stays with its socket, and a new socket has a new id.
   */
  #goesOn(client: string, server: string): boolean {
    let [count, stayed] = [0, 0];
    for (const { exchanges } of this.#affected.get(client) ?? [])
      for (const one of exchanges) {
        if (one.server.address !== server || !isLost(one)) continue;
        // c-ares may retry from a new socket, which may reach any server, also the same one. A
        // client that follows a list does not.
        if (isAskedAnew(one, exchanges)) stayed++;
        else if (isTakenOn(one, exchanges)) count++;
      }
    return count >= MIN_WENT_ON && stayed <= MAX_STAYED * count;
  }

  /**
   * True if the client had used each of them from several sockets before anything was lost: a client
   * with a list uses its first server.
   */
  #askedBothWhenWell(client: string, servers: readonly string[]): boolean {
    const lostMs = sentSpan(this.#lost(client, servers)).fromMs;
    const flows = this.#flows.get(client) ?? [];
    return servers.every(
      (server) =>
        flows.filter((flow) => flow.server === server && flow.firstReplyMs < lostMs).length >=
        MIN_ASKED_OF_LIST,
    );
  }
}

/**
 * True if the next query with this question and id goes to the same server, from another socket.
 */
function isAskedAnew(one: SeenExchange, exchanges: readonly SeenExchange[]): boolean {
  const next = exchanges.find(
    ({ sentMs, id, type, name }) =>
      sentMs > one.sentMs && id === one.id && type === one.type && name === one.name,
  );
  return (
    next !== undefined &&
    next.server.address === one.server.address &&
    next.client.port !== one.client.port
  );
}

function isTakenOn(one: SeenExchange, exchanges: readonly SeenExchange[]): boolean {
  return exchanges.some(
    (other) =>
      other.server.address !== one.server.address &&
      other.sentMs > one.sentMs - ASKED_AT_ONCE_MS &&
      other.id === one.id &&
      other.type === one.type &&
      other.name === one.name,
  );
}
