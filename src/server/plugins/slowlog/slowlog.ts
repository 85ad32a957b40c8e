/** `slowlog`: logs a line for each query with a slow reply, showing where the time was spent. */
import { limit } from '../../base/limits.ts';
import { andThen, isLater } from '../../base/maybe.ts';
import { optional } from '../../corefile/positions.ts';
import { setting } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { duration, integer } from '../../corefile/word-values.ts';
import type { Counter } from '../../metrics/registry.ts';
import { perRoute } from '../../engine/contract/per-route.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { exchangeTaps } from '../../engine/contract/ports.ts';
import { EDE } from '../../wire/iana.ts';
import { commonFormat, compileFormat } from '../../engine/contract/log-format.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { SlowRecorder } from './slow-recorder.ts';

/** If an upstream is down, every query is slow, and the first few lines are sufficient. */
const rateLimit = limit({ default: 10, min: 1, max: 10_000 });

const syntax = directive({
  name: 'slowlog',
  summary: 'logs slow queries and shows where the time was spent',
  repeat: 'once',
  args: {
    thresholdMs: optional(duration('DURATION', { minMs: 1, maxMs: 60_000 }), {
      default: 1000,
      help: 'threshold above which a reply counts as slow',
    }),
  },
  properties: {
    rate: setting('rate', integer('LINES', rateLimit), {
      default: rateLimit.default,
      help: 'maximum number of lines per second and worker; further slow queries are only counted',
    }),
  },
});

/** Follows each of the block's queries from link to link, without reading the clock unless the query waits. */
export const slowlog: Plugin = definePlugin({
  syntax,
  operational: true,
  plan(_, plan) {
    plan.recorded = true;
  },
  setup: (options, context, next) => new SlowLog(options, context, next).link,
});

class SlowLog {
  readonly #options: Options<typeof syntax>;
  readonly #context: WorkerContext;
  readonly #next: Next;
  readonly #slow: (query: Query) => Counter;
  readonly #suppressed: Counter;
  readonly #print = compileFormat(commonFormat);
  /** The recorder for the next query. If the query waits, it takes the recorder over. */
  #recorder: SlowRecorder;
  /**
   * The number of lines that may be written now, the time of its last update, and the number of lines omitted since
   * then.
   */
  #tokens: number;
  #countedAt: number;
  #left = 0;

  constructor(options: Options<typeof syntax>, context: WorkerContext, next: Next) {
    const { clock, metrics } = context;
    this.#options = options;
    this.#context = context;
    this.#next = next;
    this.#recorder = new SlowRecorder(clock);
    this.#tokens = options.rate;
    this.#countedAt = clock.now();
    const slow = metrics.counter(
      'ndots_slowlog_queries_total',
      'Number of queries whose reply took longer than the threshold.',
      ['server', 'view'],
    );
    const slowOf = perRoute(({ server, view }) => slow.with(server, view));
    this.#slow = ({ route }) => slowOf(route);
    this.#suppressed = metrics.counter(
      'ndots_slowlog_suppressed_total',
      'Number of slow queries that were not logged because of the rate limit.',
    );
    context.offer(exchangeTaps, {
      exchanged({ query: { recorder }, host, port, proto, sentAt, reply, start, end }) {
        if (!(recorder instanceof SlowRecorder)) return;
        const rcode = reply === null || end - start < 4 ? -1 : reply[start + 3]! & 0xf;
        recorder.exchanged(host, port, proto, sentAt, rcode);
      },
    });
  }

  readonly link: Next = (query) => {
    // An internal lookup is part of the client's query.
    if (query.depth > 0 || query.proto === 'internal') return this.#next(query);
    const recorder = this.#recorder;
    const other = query.recorder;
    recorder.begin(query.arrived, other);
    query.recorder = recorder;
    const reply = this.#next(query);
    if (isLater(reply)) {
      recorder.wait();
      this.#recorder = new SlowRecorder(this.#context.clock);
      return andThen(reply, this.#over, { query: query.keep(), recorder });
    }
    query.recorder = other;
    return this.#judge(reply, query, recorder);
  };

  readonly #over = (reply: Reply, { query, recorder }: FollowedQuery): Reply =>
    this.#judge(reply, query, recorder);

  #judge(reply: Reply, query: Query, recorder: SlowRecorder): Reply {
    const now = this.#context.clock.now();
    if (now - query.arrived >= this.#options.thresholdMs) this.#tell(reply, query, recorder, now);
    return reply;
  }

  #tell(reply: Reply, query: Query, recorder: SlowRecorder, now: number): void {
    this.#slow(query).add(1);
    const { rate } = this.#options;
    this.#tokens = Math.min(rate, this.#tokens + ((now - this.#countedAt) / 1000) * rate);
    this.#countedAt = now;
    if (this.#tokens < 1) {
      this.#left++;
      this.#suppressed.add(1);
      return;
    }
    this.#tokens--;
    const more = this.#left === 0 ? '' : ` suppressed=${this.#left}`;
    this.#left = 0;
    const stale = reply.errors?.some(({ code }) => isStale(code)) === true;
    const line = this.#print(query, reply, now - query.arrived);
    this.#context.log.warning(
      `${line} plugin=${reply.plugin || '-'} cache=${stale ? 'stale' : recorder.cache} upstreams=${recorder.upstreams} spent=${recorder.spent(now)}${more}`,
    );
  }
}

interface FollowedQuery {
  readonly query: Query;
  readonly recorder: SlowRecorder;
}

function isStale(code: number): boolean {
  return code === EDE.STALE_ANSWER || code === EDE.STALE_NXDOMAIN;
}
