/**
 * Records one lookup, with each query's answer, reason and effect, and the steps that sent nothing (hosts file,
 * nsswitch, caches).
 */
import type { Clock } from '../../server/base/clock.ts';
import type { QueryToSend, SentQuery } from './network.ts';
import type { SocketKind } from '../../server/wire/transports.ts';
import { labelOf, type ClientReply } from './reply.ts';

export interface SilentStep {
  readonly atMs: number;
  readonly text: string;
  /** The number of queries before it. */
  readonly after: number;
  readonly lookup: number;
}

/** In milliseconds. Planned queries within this time of each other count as sent together. */
const togetherMs = 1;

/**
 * True if two queries were sent together. This means at the same time in a plan, or in one turn of the event loop in a
 * live run. A query sent after a reply was not sent together with earlier ones.
 */
export function leftTogether(one: SentQuery, other: SentQuery): boolean {
  const [earlier, later] = one.atMs <= other.atMs ? [one, other] : [other, one];
  const waited =
    later.atMs > earlier.atMs &&
    earlier.answeredAtMs !== null &&
    later.atMs >= earlier.answeredAtMs;
  if (waited) return false;
  return one.turn === null ? later.atMs - earlier.atMs <= togetherMs : one.turn === other.turn;
}

const planned = { serverPort: 53, sourcePort: null, turn: null } as const;

/** A trace that is being recorded. Models report their steps to it. */
export class Trace {
  readonly exchanges: SentQuery[] = [];
  readonly steps: SilentStep[] = [];
  readonly debugLines: string[] = [];
  lookup = 0;
  readonly #clock: Clock;
  readonly #start: number;
  readonly #ids = new Map<number, number>();
  #ports = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#start = clock.now();
  }

  get nowMs(): number {
    return this.#clock.now() - this.#start;
  }

  nextPort(): number {
    return ++this.#ports;
  }

  /** @param real the port and turn, if it was actually sent */
  begin(
    query: QueryToSend,
    server: string,
    protocol: SocketKind,
    port: number,
    real: Pick<SentQuery, 'serverPort' | 'sourcePort' | 'turn'> = planned,
  ): SentQuery {
    let id = this.#ids.get(query.id);
    if (id === undefined) {
      id = this.#ids.size + 1;
      this.#ids.set(query.id, id);
    }
    const { id: wireId, relayed = false, ...asked } = query;
    const exchange: SentQuery = {
      ...asked,
      atMs: this.nowMs,
      server,
      ...real,
      protocol,
      port,
      wireId,
      id,
      answer: 'DROP',
      answeredAtMs: null,
      reply: null,
      outcome: '',
      lookup: this.lookup,
      relayed,
    };
    this.exchanges.push(exchange);
    return exchange;
  }

  answered(exchange: SentQuery, reply: ClientReply): void {
    exchange.answer = labelOf(reply);
    exchange.answeredAtMs = this.nowMs;
    exchange.reply = reply;
  }

  /**
   * Records the client's conclusion about a name as a whole, in the last batch of queries for that name.
   * @param since the number of queries sent before the name's first one
   */
  conclude(since: number, text: string): void {
    const own = this.exchanges.slice(since).filter((exchange) => !exchange.relayed);
    const last = own.at(-1);
    if (last === undefined) return;
    for (const exchange of own) if (leftTogether(exchange, last)) note(exchange, text);
  }

  /** Adds a line that the program itself would print (GODEBUG). */
  debug(line: string): void {
    this.debugLines.push(line);
  }

  step(text: string): void {
    this.steps.push({
      atMs: this.nowMs,
      text,
      after: this.exchanges.length,
      lookup: this.lookup,
    });
  }
}

/** Records how the client reacted to the answer. A second sentence is appended. */
export function note(exchange: SentQuery | null, text: string): void {
  if (exchange === null) return;
  exchange.outcome = exchange.outcome === '' ? text : `${exchange.outcome} ${text}`;
}
