/** Clients that get REFUSED for a name, and clients that get an answer for it at the same time. */
import { RCODE } from '../../../server/wire/iana.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';

const NAMES_MAX = 2000;
const CLIENTS_MAX = 200;

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
  /** Names that were not refused yet; with more, the oldest are forgotten. */
  readonly #fine = new Map<string, NameReplies>();

  add(exchange: SeenExchange): void {
    if (isLost(exchange)) return;
    const { name, type, rcode, client, sentMs } = exchange;
    const isRefused = rcode === RCODE.REFUSED;
    if (!isRefused && rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return;
    const key = `${type} ${name}`;
    const replies = isRefused
      ? this.#refusedAt(key)
      : (this.#refused.get(key) ?? this.#fineAt(key));
    const entry = replies?.clients.at(client.address, newClient);
    if (replies === null || entry === undefined || entry === null) return;
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

  #refusedAt(key: string): NameReplies | null {
    const replies = this.#refused.at(key, (each) => this.#fine.get(each) ?? newName());
    this.#fine.delete(key);
    return replies;
  }

  #fineAt(key: string): NameReplies {
    const known = this.#fine.get(key);
    if (known !== undefined) return known;
    if (this.#fine.size >= NAMES_MAX) this.#fine.delete(this.#fine.keys().next().value!);
    const made = newName();
    this.#fine.set(key, made);
    return made;
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

function newName(): NameReplies {
  return { firstRefusedMs: Infinity, clients: new BoundedMap(CLIENTS_MAX) };
}

function newClient(client: string): ClientReplies {
  return { client, refused: 0, answered: 0, lastAnsweredMs: -Infinity };
}
