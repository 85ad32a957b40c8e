/** Commands that list and release the answers held by all workers. */
import { Problem } from '../../base/problem.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { NameError, parseName, printName } from '../../wire/name.ts';

/** Sent by a worker when it starts or stops holding an answer. An empty one announces the worker. */
export interface HeldAnswer {
  readonly name: string;
  readonly type: string;
  /** Milliseconds since 1970; 0 if it is over. */
  readonly since: number;
  readonly rcode: string;
}

/** Sent to all workers to release this name or, if it is empty, all names. */
export interface Release {
  readonly release: string;
}

/** One block's answer to `lkg/list`. */
export interface HeldReport {
  readonly servers: readonly string[];
  readonly zones: readonly string[];
  readonly view: string;
  readonly held: readonly {
    readonly name: string;
    readonly type: string;
    /** Times of the first denial and of the release (ISO 8601). */
    readonly since: string;
    readonly until: string;
    readonly rcode: string;
  }[];
}

/** Maximum number of answers in the list. */
const LISTED_MAX = 10_000;

/** An answer and the number of its holders. Each worker's signed and unsigned answers count separately. */
interface ListedAnswer {
  readonly held: HeldAnswer;
  /** Time of the report on the monotonic clock, in milliseconds. */
  readonly at: number;
  holders: number;
}

/** Offers the commands `lkg/list` and `lkg/release` (for one name or for all). */
export class HeldAnswers {
  readonly #context: ControlContext;
  readonly #holdMs: number;
  readonly #held = new Map<string, ListedAnswer>();

  constructor(context: ControlContext, holdMs: number) {
    this.#context = context;
    this.#holdMs = holdMs;
    context.onMessage((message) => this.#note(message as HeldAnswer));
    context.offerCommand('lkg/list', () => Promise.resolve(this.#list()));
    context.offerCommand('lkg/release', async (words) => this.#release(words.get('name') ?? ''));
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

  /** Removes expired answers, because a worker that has ended cannot report any releases. */
  #expire(): void {
    const before = this.#context.clock.now() - this.#holdMs;
    for (const [key, { at }] of this.#held) if (at < before) this.#held.delete(key);
  }

  #list(): HeldReport {
    this.#expire();
    const { servers, zones, view } = this.#context;
    const held = [...this.#held.values()].map(({ held: { name, type, since, rcode } }) => ({
      name,
      type,
      since: new Date(since).toISOString(),
      until: new Date(since + this.#holdMs).toISOString(),
      rcode,
    }));
    const byName = held.toSorted((a, b) =>
      `${a.name} ${a.type}` < `${b.name} ${b.type}` ? -1 : 1,
    );
    return { servers, zones, view, held: byName };
  }

  #release(text: string): { readonly released: string } {
    const name = nameOf(text);
    for (const [key, { held }] of this.#held)
      if (name === '' || held.name === name) this.#held.delete(key);
    this.#context.publish({ release: name } satisfies Release);
    this.#context.log.info(`released by the operator: ${name === '' ? 'all names' : name}`);
    return { released: name === '' ? '*' : name };
  }
}

/**
 * Parses a name as absolute and in lower case; `*` becomes an empty text.
 * @throws Problem `admin-wrong`
 */
function nameOf(text: string): string {
  if (text === '*') return '';
  let why = 'which name?';
  try {
    if (text !== '') return printName(parseName(text)).toLowerCase();
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
    why = `${JSON.stringify(text)} is not a name: ${error.message}`;
  }
  throw new Problem({
    code: 'admin-wrong',
    text: why,
    remedy: 'Send name=NAME, or name=* for all names.',
  });
}
