/** Finds the queries that a server sent while it was answering one, which show where the answer came from. */
import { TYPE } from '../../../server/wire/iana.ts';
import { readMessage } from '../../../server/wire/message.ts';
import { printData } from '../../../server/wire/print.ts';
import { ReadError } from '../../../server/wire/reader.ts';
import { addressOf, finalServer, type SeenExchange } from '../pair/seen-exchange.ts';

/** Limit on stored exchanges. A server that answers 10 000 queries per second sends its own within a second. */
const STORED_MAX = 10_000;

/** Stores the latest exchanges by question. */
export class ServerQueries {
  readonly #byQuestion = new Map<string, SeenExchange[]>();
  /** The questions of the stored exchanges, oldest first. */
  readonly #order: string[] = [];
  #oldest = 0;

  /** Call this when an exchange has ended and its client's process has been looked up. */
  add(exchange: SeenExchange): void {
    const key = questionOf(exchange.name, exchange.type);
    const known = this.#byQuestion.get(key);
    if (known === undefined) this.#byQuestion.set(key, [exchange]);
    else known.push(exchange);
    this.#order.push(key);
    if (this.#order.length - this.#oldest > STORED_MAX) this.#dropOldest();
  }

  /**
   * The queries that the answering process sent for the same question, or for an alias in the reply. They count only if
   * they were answered in the meantime.
   * @returns null if that is not known, because the process or the sender of such a query is unknown
   */
  of(exchange: SeenExchange): readonly SeenExchange[] | null {
    const { answerer = null, name, type, sentMs, repliedMs } = exchange;
    if (answerer === null || answerer.why !== null || repliedMs === null) return null;
    const pids = new Set(answerer.processes.map(({ pid }) => pid));
    const address = addressOf(finalServer(exchange));
    const found: SeenExchange[] = [];
    for (const each of [name, ...aliasesIn(exchange)])
      for (const own of this.#byQuestion.get(questionOf(each, type)) ?? []) {
        // A query that is answered later may be a refresh of the cache.
        const isMeanwhile =
          own.repliedMs !== null && own.repliedMs >= sentMs && own.repliedMs <= repliedMs;
        if (!isMeanwhile || own === exchange) continue;
        if (own.asker?.processes.some(({ pid }) => pids.has(pid))) found.push(own);
        else if (own.asker?.why !== null && own.client.address === address) return null;
      }
    return found;
  }

  #dropOldest(): void {
    const key = this.#order[this.#oldest++]!;
    const known = this.#byQuestion.get(key)!;
    known.shift();
    if (known.length === 0) this.#byQuestion.delete(key);
    if (this.#oldest < STORED_MAX) return;
    this.#order.splice(0, this.#oldest);
    this.#oldest = 0;
  }
}

function questionOf(name: string, type: number): string {
  return `${type} ${name}`;
}

/** The names that the reply's CNAME records lead to, in lower case. */
function aliasesIn({ reply, answers, type }: SeenExchange): readonly string[] {
  if (reply === null || answers === 0 || type === TYPE.CNAME) return [];
  try {
    return readMessage(reply)
      .answer.filter((record) => record.type === TYPE.CNAME)
      .map((record) => printData(record.type, record.data).toLowerCase());
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    return [];
  }
}
