/**
 * Answers for the names that clients query most, before and after the latest reload of each server. Only used for
 * inputs that report reloads, because nothing else shows when a configuration changed.
 */
import type { SeenExchange } from '../capture/pair/seen-exchange.ts';
import { typeName } from '../../server/wire/iana.ts';
import { SpaceSaving } from '../../server/metrics/space-saving.ts';
import { AnswerSide } from './answer-side.ts';
import type { ChangedAnswer } from './reload-shape.ts';
import { answerHash, readAnswer, type SeenAnswer } from './seen-answer.ts';

/**
 * The length of a key in bytes, which contains the server's number, the type and the name. Names that do not fit are
 * not compared.
 */
const KEY_BYTES = 255;
const HEAD_BYTES = 4;
/** Clients of a name that are counted separately. */
const CLIENTS_MAX = 64;
/** The estimated size in bytes of an entry and its slot in the sketch, without answers and clients. */
const ENTRY_BYTES = KEY_BYTES + 400;
const CLIENT_BYTES = 60;

/**
 * In milliseconds. Each thread separately converts its monotonic clock to the time of day, which has only whole
 * milliseconds.
 */
const CLOCK_MS = 5;

/** The time during which a server changed its configuration. */
export interface ReloadTime {
  /** The first moment at which a reply may come from the new configuration, in milliseconds since 1970. */
  readonly fromMs: number;
  /** All replies come from it since then. */
  readonly toMs: number;
}

/** A name and type that a server was queried for. */
class AnswerEntry {
  readonly server: number;
  readonly name: string;
  readonly type: number;
  readonly clients: Set<string> = new Set();
  hasMoreClients = false;
  /** Null: it was not queried then. */
  before: AnswerSide | null = null;
  after: AnswerSide = new AnswerSide();
  lastMs: number;
  /** The previous reply, both as a number and as an answer. */
  hash = -1;
  answer: SeenAnswer | null = null;

  constructor(server: number, name: string, type: number, lastMs: number) {
    this.server = server;
    this.name = name;
    this.type = type;
    this.lastMs = lastMs;
  }

  client(address: string): void {
    if (this.clients.has(address)) return;
    if (this.clients.size < CLIENTS_MAX) this.clients.add(address);
    else this.hasMoreClients = true;
  }

  get bytes(): number {
    return (
      ENTRY_BYTES + this.clients.size * CLIENT_BYTES + (this.before?.bytes ?? 0) + this.after.bytes
    );
  }
}

/** A name's answers before and after a server's reload. */
export interface ComparedAnswer extends Pick<
  ChangedAnswer,
  'name' | 'type' | 'repliesBefore' | 'repliesAfter'
> {
  readonly addresses: ReadonlySet<string>;
  readonly hasMoreClients: boolean;
  /** Null: the answer is the same. */
  readonly change: Pick<ChangedAnswer, 'kind' | 'before' | 'after'> | null;
}

const never: ReloadTime = { fromMs: -Infinity, toMs: -Infinity };

export class AnswerBook {
  readonly #sketch: SpaceSaving;
  readonly #entries: AnswerEntry[] = [];
  readonly #windowMs: number;
  readonly #key = new Uint8Array(4 * KEY_BYTES);
  readonly #encoder = new TextEncoder();
  readonly #reloads = new Map<number, ReloadTime>();
  #halvedMs = -Infinity;

  /** @param capacity names and types for all servers together; beyond this, the least queried are displaced */
  constructor(capacity: number, windowMs: number) {
    this.#sketch = new SpaceSaving(capacity, KEY_BYTES);
    this.#windowMs = windowMs;
  }

  /**
   * Records a client's query with its reply.
   * @param server the input's number
   */
  take(server: number, { name, type, client, sentMs, reply }: SeenExchange): void {
    if (reply === null || name.length > KEY_BYTES - HEAD_BYTES) return;
    const hash = answerHash(reply);
    if (hash < 0) return;
    const entry = this.#entryOf(server, name, type, sentMs);
    if (entry.hash !== hash) {
      entry.answer = readAnswer(reply);
      entry.hash = hash;
    }
    if (entry.answer === null) return;
    const { fromMs, toMs } = this.#reloads.get(server) ?? never;
    // Such a reply can come from either configuration.
    if (sentMs >= fromMs && sentMs <= toMs) return;
    entry.lastMs = Math.max(entry.lastMs, sentMs);
    entry.client(client.address);
    // A reply to a query from before the reload may arrive after it.
    const side = sentMs < fromMs ? (entry.before ??= new AnswerSide()) : entry.after;
    side.add(entry.answer, sentMs);
  }

  /** Begins a server's new configuration. The answers after the previous reload become those before this one. */
  reload(server: number, switched: ReloadTime): void {
    const fromMs = switched.fromMs - CLOCK_MS;
    const toMs = switched.toMs + CLOCK_MS;
    this.#reloads.set(server, { fromMs, toMs });
    for (const entry of this.#entries) {
      if (entry.server !== server) continue;
      const later = entry.after.splitAt(fromMs, toMs);
      const isOld = entry.after.isEmpty || entry.lastMs < fromMs - this.#windowMs;
      entry.before = isOld ? null : entry.after;
      entry.after = later;
    }
  }

  /** Iterates over names that have answers both before and after the server's latest reload. */
  *compared(server: number): Iterable<ComparedAnswer> {
    for (const entry of this.#entries) {
      const { before, after, name, type, clients, hasMoreClients } = entry;
      if (entry.server !== server || before === null || before.isEmpty || after.isEmpty) continue;
      yield {
        name,
        type: typeName(type),
        ...{ addresses: clients, hasMoreClients },
        repliesBefore: before.replies,
        repliesAfter: after.replies,
        change: before.compare(after),
      };
    }
  }

  /** Lets names that used to be busy make room for new ones. */
  advance(nowMs: number): void {
    if (nowMs - this.#halvedMs < this.#windowMs) return;
    if (this.#halvedMs > -Infinity) this.#sketch.halve();
    this.#halvedMs = nowMs;
  }

  /** Forgets a server that is gone. */
  drop(server: number): void {
    this.#reloads.delete(server);
    for (const entry of this.#entries)
      if (entry.server === server) {
        entry.before = null;
        entry.after = new AnswerSide();
      }
  }

  /** The estimated size in bytes with all slots in use. */
  static limitBytes(capacity: number): number {
    return capacity * (ENTRY_BYTES + CLIENTS_MAX * CLIENT_BYTES + 2 * AnswerSide.limitBytes);
  }

  /** The estimated size in bytes. */
  get bytes(): number {
    return this.#entries.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #entryOf(server: number, name: string, type: number, sentMs: number): AnswerEntry {
    const key = this.#key;
    key[0] = server >> 8;
    key[1] = server;
    key[2] = type >> 8;
    key[3] = type;
    const { written } = this.#encoder.encodeInto(name, key.subarray(HEAD_BYTES));
    const slot = this.#sketch.add(key, 0, HEAD_BYTES + written);
    const known = this.#sketch.replaced ? undefined : this.#entries[slot];
    return known ?? (this.#entries[slot] = new AnswerEntry(server, name, type, sentMs));
  }
}
