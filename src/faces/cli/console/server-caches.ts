/** Queries servers' caches for the Cache page through their `admin` directives. */
import { adminServers, type AdminChoice } from '../cache/admin-servers.ts';
import {
  answerDocument,
  askCaches,
  checkName,
  type CacheAction,
  type CacheAnswerDocument,
} from '../cache/cache-answers.ts';
import type { Io } from '../command.ts';
import { usage } from '../option-values.ts';

/** Limit on queued requests, because a server runs one command at a time. */
const WAITING_MAX = 8;

export interface CachesView {
  /** False: no option names a server. */
  readonly isGiven: boolean;
  readonly mayFlush: boolean;
  readonly answers: readonly CacheAnswerDocument[];
}

export interface ServerCachesParts {
  /** Null: no servers were given. */
  readonly choice: AdminChoice | null;
  readonly mayFlush: boolean;
  readonly io: Pick<Io, 'env' | 'signal'>;
}

/** Queries the servers, one request at a time. */
export class ServerCaches {
  readonly #parts: ServerCachesParts;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(parts: ServerCachesParts) {
    this.#parts = parts;
  }

  get isGiven(): boolean {
    return this.#parts.choice !== null;
  }

  /**
   * @param name if empty, no server is queried
   * @throws Problem
   */
  async ask(action: CacheAction, name: string, below: boolean): Promise<CachesView> {
    const { choice, mayFlush } = this.#parts;
    const facts = { isGiven: choice !== null, mayFlush };
    if (name === '' || choice === null) return { ...facts, answers: [] };
    if (action === 'flush' && !mayFlush)
      throw usage('this console may not flush', 'Start it with --allow flush.');
    const absolute = name.endsWith('.') ? name : `${name}.`;
    checkName(absolute);
    if (this.#waiting >= WAITING_MAX)
      throw usage('too many requests are waiting for the servers', 'Try again.');
    this.#waiting++;
    const answers = this.#last
      .then(() => this.#answers(choice, action, absolute, below))
      .finally(() => this.#waiting--);
    this.#last = answers.catch(() => undefined);
    return { ...facts, answers: await answers };
  }

  async #answers(
    choice: AdminChoice,
    action: CacheAction,
    name: string,
    below: boolean,
  ): Promise<readonly CacheAnswerDocument[]> {
    // Pods change, so each request lists them again.
    const { servers, close } = await adminServers(choice, this.#parts.io);
    try {
      return (await askCaches(servers, action, [name], below)).map(answerDocument);
    } finally {
      close();
    }
  }
}
