/** The answer cache that c-ares has had since 1.31, which also caches negative answers. */
import type { Clock } from '../../server/base/clock.ts';
import type { ClientReply } from './reply.ts';

/** The maximum time for which an answer is cached, in seconds. */
const longestTtl = 3600;

interface CachedReply {
  readonly reply: ClientReply;
  /** Milliseconds on the cache's clock. */
  readonly until: number;
}

/** A channel's cached replies, by name and type, until their TTLs expire. */
export class CaresCache {
  readonly #clock: Clock;
  readonly #kept = new Map<string, CachedReply>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(name: string, type: string): ClientReply | null {
    const kept = this.#kept.get(keyOf(name, type));
    return kept !== undefined && kept.until > this.#clock.now() ? kept.reply : null;
  }

  /** Ignores truncated replies and those with TTL 0. */
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
