/** Clients that get REFUSED for a name, and clients that get an answer for it at the same time. */
import { RCODE } from '../../../server/wire/iana.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { RecentlyUsed } from '../../../server/base/recently-used.ts';
import { BoundedMap } from './bounded-map.ts';

const NAMES_MAX = 2000;
const CLIENTS_MAX = 200;
const TYPES_MAX = 20;

/** Replies to one client about one name and type. */
export interface RefusedName {
  readonly client: string;
  readonly refused: number;
  /** True if this client got an answer after the first refusal of the name. */
  readonly isAnswered: boolean;
}

/** By client, the time when its last answered query was sent, milliseconds since 1970. */
type AnsweredMs = Map<string, number>;

interface NameReplies {
  firstRefusedMs: number;
  /** Refusals by client. */
  readonly refused: Map<string, number>;
  readonly answeredMs: AnsweredMs;
}

/** Exchanges arrive grouped by lookup, so a client’s answers may come before refusals that were sent earlier. */
export class RefusedNames {
  /** By `type name`. */
  readonly #refused = new BoundedMap<string, NameReplies>(NAMES_MAX);
  /** The answers for names that were not refused yet, by type and name. */
  readonly #fine = new BoundedMap<number, RecentlyUsed<string, AnsweredMs>>(TYPES_MAX);

  add(exchange: SeenExchange): void {
    if (isLost(exchange)) return;
    const { name, type, rcode, client, sentMs } = exchange;
    if (rcode === RCODE.REFUSED) {
      const replies = this.#refusedAt(type, name);
      if (replies === null || !hasRoom(replies.refused, client.address)) return;
      replies.refused.set(client.address, (replies.refused.get(client.address) ?? 0) + 1);
      replies.firstRefusedMs = Math.min(replies.firstRefusedMs, sentMs);
    } else if (rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN) {
      const answeredMs = this.#answeredAt(type, name);
      const lastMs = answeredMs?.get(client.address) ?? -Infinity;
      if (answeredMs !== undefined && sentMs > lastMs && hasRoom(answeredMs, client.address))
        answeredMs.set(client.address, sentMs);
    }
  }

  /** The clients that were refused this name, or answered while others were refused. */
  of(type: number, name: string): readonly RefusedName[] {
    const replies = this.#refused.get(`${type} ${name}`);
    return replies === undefined ? [] : clientsOf(replies);
  }

  /** The same for each refused name and type. */
  get all(): readonly (readonly RefusedName[])[] {
    return this.#refused.list.map(clientsOf);
  }

  clear(): void {
    this.#refused.clear();
    this.#fine.clear();
  }

  #refusedAt(type: number, name: string): NameReplies | null {
    const fine = this.#fine.get(type);
    const answeredMs = fine?.get(name) ?? new Map();
    fine?.delete(name);
    const made = { firstRefusedMs: Infinity, refused: new Map(), answeredMs };
    return this.#refused.at(`${type} ${name}`, () => made);
  }

  #answeredAt(type: number, name: string): AnsweredMs | undefined {
    // Most captures have no refusal, so they need no key.
    const refused = this.#refused.size === 0 ? undefined : this.#refused.get(`${type} ${name}`);
    if (refused !== undefined) return refused.answeredMs;
    const fine = this.#fine.at(type, newRecent);
    let answeredMs = fine?.get(name);
    if (answeredMs === undefined) fine?.set(name, (answeredMs = new Map()));
    return answeredMs;
  }
}

function clientsOf({ firstRefusedMs, refused, answeredMs }: NameReplies): readonly RefusedName[] {
  const clients = new Set([...answeredMs.keys(), ...refused.keys()]);
  return [...clients].flatMap((client) => {
    const isAnswered = (answeredMs.get(client) ?? -Infinity) >= firstRefusedMs;
    const count = refused.get(client) ?? 0;
    return count > 0 || isAnswered ? { client, refused: count, isAnswered } : [];
  });
}

function hasRoom(clients: ReadonlyMap<string, number>, client: string): boolean {
  return clients.size < CLIENTS_MAX || clients.has(client);
}

const newRecent = (): RecentlyUsed<string, AnsweredMs> => new RecentlyUsed(NAMES_MAX);
