import { isInZone } from '../../server/contract/zone-match.ts';
import type { Clock } from '../../base/clock.ts';
import { sleep } from '../../base/clock.ts';
import type { Maybe } from '../../base/maybe.ts';
import type { Random } from '../../base/random.ts';
import { ExchangeError } from '../../net/network.ts';
import type { Next } from '../../server/contract/plugin.ts';
import { classify } from '../../wire/classify.ts';
import { EDE, FLAG, RCODE } from '../../wire/iana.ts';
import { foldName, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../wire/query.ts';
import { ReadError } from '../../wire/reader.ts';
import { failure, type ExtendedError, type Reply } from '../../wire/reply.ts';
import { answersQuery, fromUpstream } from '../../wire/upstream.ts';
import type { MessageWriter } from '../../wire/writer.ts';
import { makePolicy, type Policy } from './policy.ts';
import type { ForwardMetrics } from './counters.ts';
import type { Target } from './target.ts';

/** A query is tried for so long; glibc's patience ends then, too. */
const DEADLINE_MS = 5000;
/** A query waits at most so long for the packet budget of an upstream. */
const BUDGET_WAIT_MS = 1000;
/** A pause after a whole round of upstreams that all failed at once, so that unlimited tries do not spin. */
const ROUND_PAUSE_MS = 50;

export interface ForwarderParts {
  /** Absolute name: queries below it are taken. */
  readonly from: string;
  readonly except: readonly string[];
  readonly forceTcp: boolean;
  readonly preferUdp: boolean;
  readonly maxFails: number;
  /** Failed tries per query; null: twice the number of upstreams, 0: no limit. */
  readonly maxAttempts: number | null;
  readonly readTimeoutMs: number;
  readonly policy: Policy;
  readonly maxConcurrent: number;
  readonly nextOn: readonly number[];
  readonly nextOnNodata: boolean;
  readonly failover: readonly number[];
  readonly failfast: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: ForwardMetrics;
  readonly writer: MessageWriter;
  /** The next forward of the block, or what comes after all of them. */
  readonly next: Next;
  /** Whether `next` is a forward. */
  readonly chained: boolean;
}

/** One try that failed, for the error that the client and the log get. */
interface Attempt {
  readonly to: string;
  readonly error: Error;
}

/** One forward line at work: which upstream is asked when, and what becomes of its replies (reference: 6.2). */
export class Forwarder {
  targets: readonly Target[] = [];
  readonly #parts: ForwarderParts;
  readonly #from: WireName;
  readonly #except: readonly WireName[];
  readonly #order: (targets: readonly Target[]) => readonly Target[];
  readonly #crowded: Reply;
  #underWay = 0;

  constructor(parts: ForwarderParts) {
    this.#parts = parts;
    this.#from = foldName(parseName(parts.from));
    this.#except = parts.except.map((name) => foldName(parseName(name)));
    this.#order = makePolicy(parts.policy, parts.random);
    this.#crowded = refused(`concurrent queries exceeded maximum ${parts.maxConcurrent}`);
  }

  readonly link: Next = (query: Query): Maybe<Reply> => {
    if (!this.#matches(query)) return this.#parts.next(query);
    const { maxConcurrent, metrics } = this.#parts;
    if (maxConcurrent > 0 && this.#underWay >= maxConcurrent) {
      metrics.rejects.add(1);
      return this.#crowded;
    }
    return this.#answer(query.keep());
  };

  #matches(query: Query): boolean {
    const from = this.#from;
    if (!isInZone(query, from)) return false;
    if (this.#except.length === 0 || query.nameLength === from.length) return true;
    return !this.#except.some((name) => isInZone(query, name));
  }

  async #answer(query: Query): Promise<Reply> {
    this.#underWay++;
    try {
      const { clock, maxFails, maxAttempts, failfast, failover, metrics, random, chained } =
        this.#parts;
      const order = this.#order(this.targets);
      const most = maxAttempts ?? 2 * order.length;
      const began = clock.now();
      const deadline = began + DEADLINE_MS;
      const failed: Attempt[] = [];
      let index = 0;
      let down = 0;
      let passedOver = 0;
      let roundBegan = began;
      while (order.length > 0 && clock.now() < deadline && (most === 0 || failed.length < most)) {
        if (index >= order.length) {
          index = 0;
          down = 0;
          if (failed.length >= order.length && clock.now() - roundBegan < 1)
            await sleep(clock, ROUND_PAUSE_MS);
          roundBegan = clock.now();
        }
        let target = order[index++]!;
        if (target.isDown(maxFails)) {
          if (++down < order.length) continue;
          metrics.broken.add(1);
          if (failfast) break;
          // All are down: perhaps it is the probes that do not get through.
          target = order[random.integer(order.length)]!;
        }
        target = this.#within(target, order);
        const wait = this.#reserve(target, deadline);
        if (wait < 0) return overspent(target);
        if (wait > 0) await sleep(clock, wait);
        let reply: Reply;
        try {
          reply = await this.#ask(query, target, deadline - clock.now());
        } catch (error) {
          failed.push({ to: target.to, error: error as Error });
          if (maxFails > 0 && error instanceof ExchangeError && error.failure !== 'local')
            target.probe();
          if (down < order.length) continue;
          break;
        }
        query.notes?.set('forward/upstream', target.to);
        if (failover.includes(reply.rcode) && passedOver + 1 < order.length) {
          passedOver++;
          continue;
        }
        return chained ? await this.#pass(query, reply) : reply;
      }
      return gaveUp(failed, order);
    } finally {
      this.#underWay--;
    }
  }

  /** The upstream itself, or one in its place whose packet budget is not used up. */
  #within(target: Target, order: readonly Target[]): Target {
    const now = this.#parts.clock.now();
    if (target.budget === null || target.budget.wait(now) === 0) return target;
    let soonest = target;
    for (const other of order) {
      if (other.isDown(this.#parts.maxFails) || other.budget === null) continue;
      if (other.budget.wait(now) < soonest.budget!.wait(now)) soonest = other;
    }
    return soonest;
  }

  /** Takes a packet out of the upstream's budget. @returns how long to wait with it, ms; -1: too long, nothing is taken */
  #reserve(target: Target, deadline: number): number {
    const { budget } = target;
    if (budget === null) return 0;
    const now = this.#parts.clock.now();
    const wait = budget.wait(now);
    if (wait > BUDGET_WAIT_MS || now + wait >= deadline) {
      target.countOverspent();
      return -1;
    }
    if (wait > 0) target.countDelayed();
    budget.spend(1, now);
    return wait;
  }

  /** One try at one upstream. Rejects with ExchangeError, or ReadError for what is no DNS reply. */
  #ask(query: Query, target: Target, leftMs: number): Promise<Reply> {
    const { clock, readTimeoutMs, forceTcp, preferUdp } = this.#parts;
    const stream = forceTcp || (!preferUdp && isStream(query));
    const deadline = clock.now() + leftMs;
    return target
      .exchange(query, stream, Math.min(readTimeoutMs, leftMs))
      .then(({ bytes, truncated }) => {
        const reply = fromUpstream(bytes, 0, bytes.length, 'forward');
        if (stream || !target.plain) return checked(reply, query);
        if (!truncated && reply instanceof ReadError === false && !reply.truncated)
          return checked(reply, query);
        return this.#fetchWhole(query, target, reply, deadline);
      });
  }

  /** The reply was cut, or did not fit its datagram: asks for the whole over TCP here, rather than have each client do it. */
  async #fetchWhole(
    query: Query,
    target: Target,
    cut: Reply | ReadError,
    deadline: number,
  ): Promise<Reply> {
    const { clock, readTimeoutMs } = this.#parts;
    const now = clock.now();
    target.countTcpRetry();
    if (now < deadline) {
      target.budget?.spend(1, now);
      try {
        const { bytes } = await target.exchange(
          query,
          true,
          Math.min(readTimeoutMs, deadline - now),
        );
        return checked(fromUpstream(bytes, 0, bytes.length, 'forward'), query);
      } catch {
        // The upstream does not do TCP: the client gets what there is and may try on its own.
      }
    }
    return cut instanceof ReadError || !cut.truncated ? this.#cut(query) : checked(cut, query);
  }

  /** An empty reply with TC set. */
  #cut(query: Query): Reply {
    const { writer } = this.#parts;
    writer.reply(query, FLAG.TC | FLAG.RA);
    return writer.finish(RCODE.NOERROR, 'forward');
  }

  /** The reply, or the next forward's if this one is for passing on. */
  #pass(query: Query, reply: Reply): Maybe<Reply> {
    const { nextOn, nextOnNodata, next } = this.#parts;
    if (nextOn.includes(reply.rcode)) return next(query);
    if (!nextOnNodata || reply.rcode !== RCODE.NOERROR || reply.truncated) return reply;
    const kind = classify(reply, query.type);
    return kind === 'nodata' || kind === 'empty' ? next(query) : reply;
  }
}

function isStream({ proto }: Query): boolean {
  return proto !== 'udp' && proto !== 'internal';
}

/** The reply, if it is one to this query: FORMERR for another question, as CoreDNS has it. Throws ReadError. */
function checked(reply: Reply | ReadError, query: Query): Reply {
  if (reply instanceof ReadError) throw reply;
  if (reply.bare || answersQuery(reply, query)) return reply;
  return failure(RCODE.FORMERR, 'forward');
}

function refused(text: string): Reply {
  return failure(RCODE.REFUSED, 'forward', new Error(text), [{ code: EDE.OTHER, text }]);
}

function overspent({ to, budget }: Target): Reply {
  const text = `packet budget of ${to} used up (max_pps ${budget!.limit})`;
  return failure(RCODE.SERVFAIL, 'forward', new Error(text), [{ code: EDE.OTHER, text }]);
}

/** SERVFAIL with the last error, and for the client which upstreams did what. */
function gaveUp(failed: readonly Attempt[], order: readonly Target[]): Reply {
  return failure(RCODE.SERVFAIL, 'forward', failed.at(-1)?.error ?? noHealthy, [
    failed.length === 0 ? unhealthy(order) : explain(failed),
  ]);
}

const noHealthy = new Error('no healthy proxies');

function unhealthy(order: readonly Target[]): ExtendedError {
  const all = order.map(({ to }) => to).join(', ');
  return {
    code: EDE.NO_REACHABLE_AUTHORITY,
    text: all === '' ? 'no upstream is known' : `upstreams are down: ${all}`,
  };
}

/** At most a few words per upstream: the text travels in a datagram. */
const EXPLAINED_MAX = 4;

function explain(failed: readonly Attempt[]): ExtendedError {
  const byTarget = new Map<string, string>();
  for (const { to, error } of failed)
    byTarget.set(to, error instanceof ExchangeError ? words[error.failure] : 'sent no valid DNS');
  const texts = [...byTarget].slice(0, EXPLAINED_MAX).map(([to, what]) => `${to} ${what}`);
  const silent = failed.every(
    ({ error }) => error instanceof ExchangeError && error.failure === 'timeout',
  );
  return { code: silent ? EDE.NO_REACHABLE_AUTHORITY : EDE.NETWORK_ERROR, text: texts.join(', ') };
}

const words: Readonly<Record<ExchangeError['failure'], string>> = {
  timeout: 'did not answer',
  refused: 'refused the connection',
  unreachable: 'is unreachable',
  closed: 'closed the connection',
  tls: 'failed in TLS',
  http: 'failed in HTTP',
  local: 'could not be asked: no socket',
};
