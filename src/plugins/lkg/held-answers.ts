/** What is held in all workers, for the operator: told, and let go. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ControlContext } from '../../server/contract/control-context.ts';
import { answerText } from '../../base/http-answer.ts';
import { NameError, parseName, printName } from '../../wire/name.ts';

/** From a worker: it holds an answer, or no longer does. Empty: it is there. */
export interface HeldAnswer {
  readonly name: string;
  readonly type: string;
  /** Milliseconds since 1970; 0: it is over. */
  readonly since: number;
  readonly rcode: string;
}

/** To all workers: let go of this name; empty: of all. */
export interface Release {
  readonly release: string;
}

/** Lines of the list. */
const LISTED_MAX = 10_000;

/** One answer, and how many hold it: workers, and in each the answers with signatures and without. */
interface Listed {
  readonly held: HeldAnswer;
  /** When that was heard, by a clock that nobody sets, milliseconds. */
  readonly at: number;
  holders: number;
}

/** Serves `/lkg` (what is held) and `/lkg/release?name=NAME` (POST). */
export class HeldAnswers {
  readonly #context: ControlContext;
  readonly #holdMs: number;
  readonly #held = new Map<string, Listed>();

  constructor(context: ControlContext, holdMs: number) {
    this.#context = context;
    this.#holdMs = holdMs;
    context.onMessage((message) => this.#note(message as HeldAnswer));
  }

  /** @param address as a Corefile has it */
  open(address: string): void {
    this.#context.http(address, '/lkg', (_request, response) =>
      answerText(response, 200, this.#list()),
    );
    this.#context.http(address, '/lkg/release', (request, response) =>
      this.#release(request, response),
    );
  }

  #note(held: HeldAnswer): void {
    const key = `${held.name} ${held.type}`;
    const known = this.#held.get(key);
    if (held.since === 0) {
      if (known !== undefined && --known.holders === 0) this.#held.delete(key);
    } else if (known !== undefined) known.holders++;
    else {
      if (this.#held.size >= LISTED_MAX) this.#expire();
      if (this.#held.size < LISTED_MAX)
        this.#held.set(key, { held, at: this.#context.clock.now(), holders: 1 });
    }
  }

  /** Workers that ended did not say so. */
  #expire(): void {
    const before = this.#context.clock.now() - this.#holdMs;
    for (const [key, { at }] of this.#held) if (at < before) this.#held.delete(key);
  }

  #list(): string {
    this.#expire();
    const lines = [...this.#held.values()].map(({ held: { name, type, since, rcode } }) => {
      const until = new Date(since + this.#holdMs).toISOString();
      return `${name} ${type} since ${new Date(since).toISOString()} until ${until}, upstream: ${rcode}`;
    });
    return lines
      .toSorted()
      .map((line) => `${line}\n`)
      .join('');
  }

  #release(request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== 'POST') {
      response.setHeader('Allow', 'POST');
      return answerText(response, 405, 'POST it, with ?name=NAME, or ?name=* for all names\n');
    }
    const target = request.url ?? '';
    const query = target.includes('?') ? target.slice(target.indexOf('?') + 1) : '';
    const name = new URLSearchParams(query).get('name');
    const wanted = name === null || name === '' ? null : nameOf(name);
    if (wanted === null) return answerText(response, 400, 'name=NAME is missing, or is no name\n');
    for (const [key, { held }] of this.#held)
      if (wanted === '' || held.name === wanted) this.#held.delete(key);
    this.#context.publish({ release: wanted } satisfies Release);
    this.#context.log.info(`released by the operator: ${wanted === '' ? 'all names' : wanted}`);
    answerText(response, 200, 'released\n');
  }
}

/** Absolute and in lower case; empty for `*`; null: it is none. */
function nameOf(text: string): string | null {
  if (text === '*') return '';
  try {
    return printName(parseName(text)).toLowerCase();
  } catch (error) {
    if (error instanceof NameError) return null;
    throw error;
  }
}
