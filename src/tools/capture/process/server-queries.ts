/** Finds the queries that a server sent while it was answering one, which show where the answer came from. */
import { appendTo } from '../../../server/base/append-to.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { printData } from '../../../server/wire/print.ts';
import { addressOf, answerRecords, finalServer, type SeenExchange } from '../pair/seen-exchange.ts';

/** Limit on stored exchanges. A server that answers 10 000 queries per second sends its own within a second. */
const STORED_MAX = 10_000;
/** Limit on those that one exchange is compared with. More clients rarely look up one name while a server answers. */
const COMPARED_MAX = 500;

export class ServerQueries {
  readonly #byQuestion = new Map<string, SeenExchange[]>();
  /** Oldest first. */
  readonly #all = new Set<SeenExchange>();

  /** Call this when an exchange has ended and its client's process has been looked up. */
  add(exchange: SeenExchange): void {
    appendTo(this.#byQuestion, questionOf(exchange.name, exchange.type), exchange);
    this.#all.add(exchange);
    if (this.#all.size > STORED_MAX) this.#drop(this.#all.values().next().value!);
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
    for (const each of [name, ...aliasesIn(exchange)]) {
      const known = this.#byQuestion.get(questionOf(each, type)) ?? [];
      for (let at = known.length - 1; at >= 0; at--) {
        const own = known[at]!;
        if (known.length - at > COMPARED_MAX) {
          // Earlier ones might belong to it, too.
          if ((own.repliedMs ?? own.sentMs) >= sentMs) return null;
          break;
        }
        // A query that is answered later may be a refresh of the cache.
        const isMeanwhile =
          own.repliedMs !== null && own.repliedMs >= sentMs && own.repliedMs <= repliedMs;
        if (!isMeanwhile || own === exchange) continue;
        if (own.asker?.processes.some(({ pid }) => pids.has(pid))) found.push(own);
        else if (own.asker?.why !== null && own.client.address === address) return null;
      }
    }
    return found.toReversed();
  }

  #drop(oldest: SeenExchange): void {
    this.#all.delete(oldest);
    const key = questionOf(oldest.name, oldest.type);
    const known = this.#byQuestion.get(key)!;
    known.shift();
    if (known.length === 0) this.#byQuestion.delete(key);
  }
}

function questionOf(name: string, type: number): string {
  return `${type} ${name}`;
}

/** The names that the reply's CNAME records lead to, in lower case. */
function aliasesIn(exchange: SeenExchange): readonly string[] {
  return answerRecords(exchange)
    .filter(({ type }) => type === TYPE.CNAME && type !== exchange.type)
    .map(({ type, data }) => printData(type, data).toLowerCase());
}
