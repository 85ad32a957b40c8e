/** Clients that get REFUSED for a name, and clients that get an answer for it at the same time. */
import { RCODE } from '../../../server/wire/iana.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { RecentlyUsed } from '../../capture/process/recently-used.ts';
import { BoundedMap } from './bounded-map.ts';

const NAMES_MAX = 2000;
const CLIENTS_MAX = 200;
const TYPES_MAX = 20;

/** Replies to one client about one name and type. */
export interface RefusedName {
  readonly client: string;
  readonly refused: number;
  /** Answers to this client; 0 if the last of them was sent before the first refusal of the name. */
  readonly answered: number;
}

interface ClientReplies {
  readonly client: string;
  refused: number;
  answered: number;
  lastAnsweredMs: number;
}

interface NameReplies {
  firstRefusedMs: number;
  readonly clients: BoundedMap<string, ClientReplies>;
}

/** Exchanges arrive grouped by lookup, so a client’s answers may come before refusals that were sent earlier. */
export class RefusedNames {
  /** By `type name`. */
  readonly #refused = new BoundedMap<string, NameReplies>(NAMES_MAX);
  /** Names that were not refused yet, by type. */
  readonly #fine = new BoundedMap<number, RecentlyUsed<string, NameReplies>>(TYPES_MAX);

  add(exchange: SeenExchange): void {
    if (isLost(exchange)) return;
    const { name, type, rcode, client, sentMs } = exchange;
    const isRefused = rcode === RCODE.REFUSED;
    if (!isRefused && rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return;
    const replies = isRefused ? this.#refusedAt(type, name) : this.#answeredAt(type, name);
    const entry = replies?.clients.at(client.address, newClient);
    if (replies === null || replies === undefined || entry === null || entry === undefined) return;
    if (isRefused) {
      entry.refused++;
      replies.firstRefusedMs = Math.min(replies.firstRefusedMs, sentMs);
    } else {
      entry.answered++;
      entry.lastAnsweredMs = Math.max(entry.lastAnsweredMs, sentMs);
    }
  }

  /** The clients that were refused this name, or answered while others were refused. */
  of(type: number, name: string): readonly RefusedName[] {
    return clientsOf(this.#refused.get(`${type} ${name}`));
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
    const replies = this.#refused.at(`${type} ${name}`, () => fine?.get(name) ?? newName());
    fine?.delete(name);
    return replies;
  }

  #answeredAt(type: number, name: string): NameReplies | undefined {
    // Most captures have no refusal, so they need no key.
    const refused = this.#refused.size === 0 ? undefined : this.#refused.get(`${type} ${name}`);
    if (refused !== undefined) return refused;
    const fine = this.#fine.at(type, newRecent);
    const known = fine?.get(name);
    if (fine === null || known !== undefined) return known;
    const replies = newName();
    fine.set(name, replies);
    return replies;
  }
}

function clientsOf(replies: NameReplies | undefined): readonly RefusedName[] {
  return (replies?.clients.list ?? []).flatMap(({ client, refused, answered, lastAnsweredMs }) => {
    const isMeanwhile = lastAnsweredMs >= replies!.firstRefusedMs;
    return refused > 0 || isMeanwhile
      ? { client, refused, answered: isMeanwhile ? answered : 0 }
      : [];
  });
}

const newRecent = (): RecentlyUsed<string, NameReplies> => new RecentlyUsed(NAMES_MAX);

function newName(): NameReplies {
  return { firstRefusedMs: Infinity, clients: new BoundedMap(CLIENTS_MAX) };
}

function newClient(client: string): ClientReplies {
  return { client, refused: 0, answered: 0, lastAnsweredMs: -Infinity };
}
