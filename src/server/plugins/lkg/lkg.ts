/** `lkg`: keeps serving the last known good answer for a popular name when the upstream suddenly denies it. */
import { every } from '../../base/clock.ts';
import { limit } from '../../base/limits.ts';
import { MinuteDigest } from '../../base/minute-digest.ts';
import { andThen, isLater } from '../../base/maybe.ts';
import { zones } from '../../corefile/positions.ts';
import { setting, zoneList } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { byteSize, duration, integer } from '../../corefile/word-values.ts';
import type { Counter, Gauge } from '../../metrics/registry.ts';
import { TopKeys } from '../../metrics/top-keys.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { classify, hasExpiredSignature } from '../../wire/classify.ts';
import { EDE, FLAG, RCODE, rcodeName, TYPE, typeName } from '../../wire/iana.ts';
import { readMessage, writeRecord } from '../../wire/message.ts';
import { foldName, NAME_MAX, parseName, printName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { ExtendedError, Reply } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';
import { HeldAnswers, type HeldAnswer, type Release } from './held-answers.ts';
import { KnownGood, type GoodAnswer } from './known-good.ts';

/** Each name uses about 300 bytes in addition to its answers. */
const namesLimit = limit({ default: 2000, min: 16, max: 100_000 });
const askedLimit = limit({ default: 3, min: 1, max: 1000 });
const bytesLimit = limit({ default: 4 * 2 ** 20, min: 64 * 2 ** 10, max: 2 ** 30 });

const syntax = directive({
  name: 'lkg',
  summary: 'serves the last known good answers for popular names when upstreams suddenly deny them',
  repeat: 'once',
  args: {
    zones: zones({ help: 'zones that the plugin applies to', noNumbers: 'Write: lkg { hold 1h }' }),
  },
  properties: {
    holdMs: setting('hold', duration('DURATION', { minMs: 1000, maxMs: 24 * 3600_000 }), {
      default: 900_000,
      help: 'maximum time to serve an answer that the upstream denies',
    }),
    asked: setting('asked', integer('COUNT', askedLimit), {
      default: askedLimit.default,
      help: 'number of upstream answers after which a name counts as popular',
    }),
    names: setting('names', integer('COUNT', namesLimit), {
      default: namesLimit.default,
      help: 'number of names to count',
    }),
    bytes: setting('max_bytes', byteSize('SIZE', bytesLimit), {
      default: bytesLimit.default,
      help: 'memory for stored answers',
    }),
    except: zoneList('except', {
      isStrict: true,
      help: 'zones that the plugin ignores, in addition to cluster.local',
    }),
  },
  retired: {
    admin:
      'write `admin` in the server block, which accepts the commands lkg/list and lkg/release; delete the line',
  },
});

/** TTL of held answers in seconds (RFC 8767 section 4). */
const TTL_SECONDS = 30;
const AGE_MS = 6 * 3600_000;

const kept: readonly ExtendedError[] = [
  {
    code: EDE.STALE_ANSWER,
    text: 'last known good answer, because the upstream denies the name',
  },
];

/** Watches the answers from upstreams, and holds popular names for a while if they suddenly disappear. */
export const lkg: Plugin = definePlugin({
  syntax,
  control: ({ holdMs }, context) => void new HeldAnswers(context, holdMs),
  setup: (options, context, next) => new Guard(options, context, next).link,
});

class Guard {
  readonly #options: Options<typeof syntax>;
  readonly #context: WorkerContext;
  readonly #next: Next;
  readonly #here: ZoneMatch;
  readonly #except: ZoneMatch;
  readonly #good: KnownGood;
  readonly #replies: Counter;
  readonly #held: Gauge;
  readonly #names: Gauge;
  readonly #top: TopKeys;
  readonly #turned: MinuteDigest;
  readonly #returned: MinuteDigest;
  readonly #expired: MinuteDigest;

  constructor(options: Options<typeof syntax>, context: WorkerContext, next: Next) {
    const { metrics, clock } = context;
    this.#options = options;
    this.#context = context;
    this.#next = next;
    this.#here = new ZoneMatch(options.zones);
    this.#except = new ZoneMatch(['cluster.local.', ...(options.except ?? [])]);
    this.#good = new KnownGood(options);
    this.#replies = metrics.counter(
      'ndots_lkg_held_replies_total',
      'Number of upstream denials that were replaced with the last good answer.',
    );
    this.#held = metrics.gauge(
      'ndots_lkg_held_answers',
      'Number of stored answers that are served although upstreams deny the names.',
    );
    this.#names = metrics.gauge(
      'ndots_lkg_names',
      'Number of names whose upstream answers are counted.',
    );
    this.#top = new TopKeys({
      metrics,
      clock,
      name: 'ndots_lkg_top_names',
      help: 'Recently held replies, for the ten names with the most.',
      label: 'name',
      width: NAME_MAX,
      print: printName,
    });
    const aging = every(clock, AGE_MS, () => this.#good.age());
    const { log } = context;
    this.#turned = new MinuteDigest(clock, (count, example) =>
      log.warning(
        `upstreams deny names that existed; holding ${count} answers for popular names, such as ${example}`,
      ),
    );
    this.#returned = new MinuteDigest(clock, (count, example) =>
      log.info(`${count} held answers exist upstream again, such as ${example}`),
    );
    this.#expired = new MinuteDigest(clock, (count, example) =>
      log.warning(
        `${count} held answers, such as ${example}, are dropped because upstreams denied them for the whole "hold" time`,
      ),
    );
    context.onMessage((message) => this.#release((message as Release).release));
    context.onStop(() => {
      aging.cancel();
      for (const digest of [this.#turned, this.#returned, this.#expired]) digest.stop();
      this.#top.close();
    });
  }

  readonly link: Next = (query) => {
    if (!query.isStandard || !this.#here.holds(query) || this.#except.holds(query))
      return this.#next(query);
    const reply = this.#next(query);
    return isLater(reply) ? andThen(reply, this.#judge, query.keep()) : this.#judge(reply, query);
  };

  readonly #judge = (reply: Reply, query: Query): Reply => {
    switch (classify(reply, query.type)) {
      case 'answer':
        return this.#took(reply, query);
      case 'nxdomain':
      case 'nodata':
      case 'empty':
        return this.#denied(reply, query);
      default:
        // Clients accept it even after an alias, or without an SOA.
        return reply.rcode === RCODE.NXDOMAIN ? this.#denied(reply, query) : reply;
    }
  };

  #took(reply: Reply, query: Query): Reply {
    const good = this.#good;
    const before = good.held > 0 ? KnownGood.among(good.answers(query), query) : null;
    good.took(query, reply);
    this.#names.set(good.size);
    this.#held.set(good.held);
    if (before !== null && before.since >= 0) {
      this.#returned.note(`${query.name} ${typeName(query.type)}`);
      this.#post(query, before, 0, reply.rcode);
      this.#held.set(good.held);
    }
    return reply;
  }

  #denied(reply: Reply, query: Query): Reply {
    const answers = this.#good.answers(query);
    if (answers.length === 0) return reply;
    const now = this.#context.clock.now();
    const answer = KnownGood.fitting(answers, query);
    if (answer !== null && query.dnssecOk && hasExpiredSignature(answer.reply, this.#wallSeconds()))
      return reply;
    // NXDOMAIN denies all types, so the hold starts and ends for all of them at once.
    const denied = reply.rcode === RCODE.NXDOMAIN ? answers : answer === null ? [] : [answer];
    const held = denied.filter((each) => this.#holds(each, query, reply, now));
    if (held.length === 0) return reply;
    // There may be no data of this type, but the name exists as long as an answer for another type is held.
    return answer === null || !held.includes(answer)
      ? this.#count(reply.recoded(RCODE.NOERROR).with({ errors: kept }), query)
      : this.#count(this.#kept(answer, query), query);
  }

  /** Returns the answer to send, with the signatures removed if the client does not want them. */
  #kept(answer: GoodAnswer, query: Query): Reply {
    const { reply } = answer;
    if (query.dnssecOk || !KnownGood.isSigned(answer))
      return reply.with({ ttl: TTL_SECONDS, errors: kept });
    const { writer } = this.#context;
    const { answer: records } = readMessage(reply.bytes.subarray(reply.start, reply.end));
    writer.reply(query, reply.flags & (FLAG.AA | FLAG.RA));
    for (const record of records)
      if (record.type !== TYPE.RRSIG)
        writeRecord(writer, SECTION.answer, { ...record, ttl: TTL_SECONDS });
    return writer.finish(RCODE.NOERROR, reply.plugin).with({ errors: kept });
  }

  /** True as long as the answer is held. The first call starts the hold, and at its end the answer is removed. */
  #holds(answer: GoodAnswer, query: Query, reply: Reply, now: number): boolean {
    const good = this.#good;
    if (answer.since < 0) {
      good.hold(answer, now);
      this.#held.set(good.held);
      this.#post(query, answer, this.#context.clock.wall(), reply.rcode);
      this.#turned.note(`${query.name} ${typeName(answer.type)} (${rcodeName(reply.rcode)})`);
      return true;
    }
    if (now - answer.since < this.#options.holdMs) return true;
    good.release(query.folded.subarray(0, query.nameLength), (each) => each === answer);
    this.#held.set(good.held);
    this.#post(query, answer, 0, reply.rcode);
    this.#expired.note(`${query.name} ${typeName(answer.type)}`);
    return false;
  }

  #count(reply: Reply, query: Query): Reply {
    this.#replies.add(1);
    this.#top.add(query.folded, 0, query.nameLength);
    return reply;
  }

  #release(name: string): void {
    this.#good.release(name === '' ? null : foldName(parseName(name)), ({ since }) => since >= 0);
    this.#held.set(this.#good.held);
  }

  #post(query: Query, { type }: GoodAnswer, since: number, rcode: number): void {
    this.#context.post({
      name: query.name,
      type: typeName(type),
      since,
      rcode: rcodeName(rcode),
    } satisfies HeldAnswer);
  }

  #wallSeconds(): number {
    return Math.floor(this.#context.clock.wall() / 1000);
  }
}
