/** The answers that c-ares keeps since 1.31, negative ones too. */
import type { Clock } from '../base/clock.ts';
import type { ClientReply } from './reply.ts';

/** Seconds that an answer is kept at most. */
const longestTtl = 3600;

interface Kept {
  readonly reply: ClientReply;
  /** Of the cache's clock, milliseconds. */
  readonly until: number;
}

/** The replies of one channel, by name and type, for as long as their records allow. */
export class CaresCache {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The reply to a question that is still good; null: there is none. */
  get(name: string, type: string): ClientReply | null {
    const kept = this.#kept.get(keyOf(name, type));
    return kept !== undefined && kept.until > this.#clock.now() ? kept.reply : null;
  }

  /** Keeps a reply, unless it is truncated or says that it is good for no time. */
  put(reply: ClientReply): void {
    if (reply.truncated) return;
    const ttls = reply.answer.map((record) => record.ttl);
    if (reply.negativeTtl !== null) ttls.push(reply.negativeTtl);
    const ttl =
      reply.rcode === 'NXDOMAIN' ? (reply.negativeTtl ?? 0) : Math.min(longestTtl, ...ttls);
    if (ttl <= 0) return;
    const until = this.#clock.now() + ttl * 1000;
    this.#kept.set(keyOf(reply.name, reply.type), { reply, until });
  }
}

function keyOf(name: string, type: string): string {
  return `${name.toLowerCase()} ${type}`;
}
