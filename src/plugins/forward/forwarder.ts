/** One line of `forward`, in a worker. */
import type { Maybe } from '../../base/maybe.ts';
import type { Next } from '../../server/contract/plugin.ts';
import { isInZone } from '../../server/contract/zone-match.ts';
import { foldName, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../wire/query.ts';
import { overloaded, type Reply } from '../../wire/reply.ts';
import { Forwarding, type ForwardingHost } from './forwarding.ts';
import { refused } from './outcome.ts';
import type { ForwarderParts } from './parts.ts';
import { makePolicy } from './policy.ts';
import type { ForwardTarget } from './target.ts';

/** Forwardings that are kept for later queries. */
const IDLE_MAX = 1024;

/**
 * One forward line at work: which queries it takes, how many at a time, and which upstream is asked
 * first.
 */
export class Forwarder implements ForwardingHost {
  targets: readonly ForwardTarget[] = [];
  readonly parts: ForwarderParts;
  readonly #from: WireName;
  readonly #except: readonly WireName[];
  readonly #order: (targets: readonly ForwardTarget[]) => readonly ForwardTarget[];
  readonly #crowded: Reply;
  readonly #idle: Forwarding[] = [];
  #underWay = 0;

  constructor(parts: ForwarderParts) {
    this.parts = parts;
    this.#from = foldName(parseName(parts.from));
    this.#except = parts.except.map((name) => foldName(parseName(name)));
    this.#order = makePolicy(parts.policy, parts.random);
    this.#crowded = refused(`concurrent queries exceeded maximum ${parts.maxConcurrent}`);
  }

  readonly link: Next = (query: Query): Maybe<Reply> => {
    if (!this.#matches(query)) return this.parts.next(query);
    // Too many wait in front of the whole server.
    if (!query.mayWait) return overloaded;
    const { maxConcurrent, metrics } = this.parts;
    if (this.#underWay >= maxConcurrent) {
      metrics.rejects.add(1);
      return this.#crowded;
    }
    this.#underWay++;
    metrics.waiting.add(1);
    const forwarding = this.#idle.pop() ?? new Forwarding(this);
    return forwarding.begin(query.keep(), this.#order(this.targets));
  };

  over(forwarding: Forwarding): void {
    this.#underWay--;
    this.parts.metrics.waiting.add(-1);
    if (this.#idle.length < IDLE_MAX) this.#idle.push(forwarding);
  }

  #matches(query: Query): boolean {
    const from = this.#from;
    if (!isInZone(query, from)) return false;
    if (this.#except.length === 0 || query.nameLength === from.length) return true;
    return !this.#except.some((name) => isInZone(query, name));
  }
}
