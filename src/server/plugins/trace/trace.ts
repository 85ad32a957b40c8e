/** `trace`: sends queries, and their path through the plugins, to a tracing collector. */
import { every } from '../../base/clock.ts';
import { andThen, isLater } from '../../base/maybe.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { ownVersion } from '../../engine/contract/own-version.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { rcodeName, typeName } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { Exporter } from './exporter.ts';
import { otlpBody } from './otlp.ts';
import { SpanQueue } from './span-queue.ts';
import { TraceRecorder } from './recorder.ts';
import type { Span, SpanBatch, Taken } from './span.ts';
import { zipkinBody, type Reporter } from './zipkin.ts';
import { Problem, type Place } from '../../base/problem.ts';
import { optional, position, type Position } from '../../corefile/positions.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { custom, fields, setting, type PropertySchema } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { decimal, duration, integer, word } from '../../corefile/word-values.ts';

type CollectorKind = 'zipkin' | 'otlp';

interface SpanCollector {
  readonly kind: CollectorKind;
  readonly url: string;
}

const usual: Readonly<Record<CollectorKind, { readonly at: string; readonly path: string }>> = {
  zipkin: { at: 'localhost:9411', path: '/api/v2/spans' },
  otlp: { at: 'localhost:4318', path: '/v1/traces' },
};

const collector: Position<SpanCollector> = position(
  '[ENDPOINT-TYPE] [ENDPOINT]',
  'collector: `zipkin` (default) at HOST:PORT or a URL (default localhost:9411), or `otlp`, OTLP over HTTP (default localhost:4318)',
  (line) => {
    const words = line.takeAll();
    if (words.length > 2) line.refuseCount();
    const [type, where] = words.length === 2 ? words : [undefined, words[0]];
    // A type without an address is a type, not a host by that name.
    const alone = where !== undefined && type === undefined && isKind(where.text.toLowerCase());
    const kind = alone ? where.text.toLowerCase() : (type?.text.toLowerCase() ?? 'zipkin');
    if (kind === 'datadog') throw datadog((type ?? where)!.place);
    if (!isKind(kind))
      return line.refuse(`tracing endpoint type '${kind}' is not supported`, type?.place, {
        hint: 'The types are zipkin and otlp.',
      });
    const { at, path } = usual[kind];
    const text = alone || where === undefined ? at : where.text;
    const url = urlOf(text, path);
    return url === null
      ? line.refuse(`not an endpoint: ${JSON.stringify(text)}`, where?.place, {
          hint: 'Endpoints are written like localhost:9411 or http://collector:9411/api/v2/spans.',
        })
      : { kind, url };
  },
);

function isKind(text: string): text is CollectorKind {
  return text === 'zipkin' || text === 'otlp';
}

/** Adds the usual path to HOST:PORT, but leaves a URL unchanged. */
function urlOf(text: string, path: string): string | null {
  const whole = /^https?:\/\//.test(text) ? text : `http://${text}${path}`;
  if (!URL.canParse(whole)) return null;
  const url = new URL(whole);
  if (url.pathname === '/') url.pathname = path;
  return url.hostname === '' ? null : url.href;
}

function datadog(place: Place): Problem {
  return new Problem({
    code: 'tracer-not-supported',
    text: "plugin/trace: tracing endpoint type 'datadog' is not supported, because the agent's own protocol is not supported",
    place,
    remedy:
      'Write `trace otlp AGENT:4318` and have the agent receive OTLP (DD_OTLP_CONFIG_RECEIVER_PROTOCOLS_HTTP_ENDPOINT=0.0.0.0:4318).',
  });
}

const clientServer: PropertySchema<boolean | null> = custom(
  'client_server',
  '[true|false]',
  (words, refuse) => {
    const [said, ...more] = words;
    if (more.length > 0)
      return refuse("Wrong argument count or unexpected line ending after 'client_server'");
    if (said === undefined || /^(?:1|t|T|true|TRUE|True)$/.test(said.text)) return true;
    if (/^(?:0|f|F|false|FALSE|False)$/.test(said.text)) return false;
    return refuse(
      `strconv.ParseBool: parsing ${JSON.stringify(said.text)}: invalid syntax`,
      said.place,
    );
  },
  {
    help: 'accepted but has no effect, because a DNS query carries no span ID',
  },
);

const syntax = directive({
  name: 'trace',
  summary: 'sends query traces to a tracing collector',
  repeat: 'merge',
  args: { collector },
  properties: {
    every: setting('every', integer('AMOUNT', { min: 0 }), {
      default: 1,
      help: 'trace one in AMOUNT queries; 0: none',
    }),
    service: setting('service', word('NAME'), {
      default: 'coredns',
      help: 'service name reported for the server',
    }),
    clientServer,
    analyticsRate: fields(
      'datadog_analytics_rate',
      { rate: optional(decimal('RATE', { min: 0, max: 1 })) },
      { help: 'accepted but has no effect; for Datadog only' },
    ),
    backlog: setting('zipkin_max_backlog_size', integer('SIZE', { min: 0 }), {
      default: 1000,
      help: 'maximum number of queued spans, on the control thread and in each worker; the oldest spans above it are dropped. 0: the default; at most 1000000',
    }),
    batch: setting('zipkin_max_batch_size', integer('SIZE', { min: 0 }), {
      default: 100,
      help: 'number of spans per batch. 0: the default; at most 10000',
    }),
    intervalMs: setting('zipkin_max_batch_interval', duration('DURATION', { minMs: 0 }), {
      default: 1000,
      help: 'maximum wait before a batch is sent. 0: the default',
    }),
  },
  warn: ({ analyticsRate, at }) =>
    analyticsRate === null
      ? []
      : [
          pluginRemark('trace', at, 'datadog_analytics_rate has no effect', {
            code: 'property-retired',
            remedy: 'Remove the line, because the agent does the sampling.',
          }),
        ],
});

type TraceOptions = Options<typeof syntax>;

/** Interval in ms after which a worker sends a batch even if it is not full. */
const FLUSH_MS = 200;
const usualSizes = { backlog: 1000, batch: 100, intervalMs: 1000 };
/** Each span uses about 500 bytes, here and in every worker. */
const most = { backlog: 1_000_000, batch: 10_000 };

/** Traces one query in every AMOUNT. The others cost only a counter and one field access per link. */
export const trace: Plugin = definePlugin({
  syntax,
  operational: true,
  plan(_, plan) {
    plan.recorded = true;
  },
  control,
  setup(options, context, next) {
    const { clock, random } = context;
    const amount = options.every;
    const from = String(random.integer(0x1_0000_0000)) + String(random.integer(0x1_0000_0000));
    const { backlog, batch } = sizes(options);
    const queue = new SpanQueue(from, backlog, batch, (spans) => context.post(spans));
    context.onMessage((message) => queue.taken((message as Taken).taken));
    context.onStart(() => {
      const ticks = every(clock, FLUSH_MS, () => queue.flush());
      context.onStop(() => {
        ticks.cancel();
        queue.flush();
      });
    });
    const ids = options.collector.kind;
    let count = 0;
    const over = (reply: Reply, { query, recorder }: Traced): Reply => {
      const { cause } = reply;
      queue.add(recorder.finish(tagsOf(query, reply), cause?.message ?? null), recorder.dropped);
      return reply;
    };
    return (query) => {
      if (amount === 0 || query.recorder !== null || ++count % amount !== 0) return next(query);
      const recorder = new TraceRecorder(
        clock,
        random,
        query.depth > 0 ? clock.now() : query.arrived,
      );
      query.recorder = recorder;
      query.notes?.set(
        'trace/traceid',
        ids === 'zipkin' ? recorder.trace.slice(16) : recorder.trace,
      );
      const reply = next(query);
      if (isLater(reply)) return andThen(reply, over, { query: query.keep(), recorder });
      query.recorder = null;
      return over(reply, { query, recorder });
    };
  },
});

interface Traced {
  readonly query: Query;
  readonly recorder: TraceRecorder;
}

function control(options: TraceOptions, context: ControlContext): void {
  const { clock, log, metrics, servers } = context;
  const { kind, url } = options.collector;
  const labels = ['endpoint'] as const;
  const version = ownVersion();
  const reporter = reporterOf(options.service, servers[0] ?? '');
  const exporter = new Exporter({
    url: new URL(url),
    contentType: kind === 'zipkin' ? 'application/json' : 'application/x-protobuf',
    body: (spans: readonly Span[]) =>
      kind === 'zipkin' ? zipkinBody(spans, reporter) : otlpBody(spans, reporter, version),
    ...sizes(options),
    clock,
    log,
    sent: metrics
      .counter('ndots_trace_spans_total', 'Number of spans that the collector accepted.', labels)
      .with(url),
    dropped: metrics
      .counter('ndots_trace_dropped_total', 'Number of spans that were not delivered.', labels)
      .with(url),
  });
  context.onMessage((message) => {
    const { from, spans, dropped } = message as SpanBatch;
    exporter.add(spans, dropped);
    context.publish({ taken: from } satisfies Taken);
  });
  context.onStop(() => exporter.close());
}

/** Returns the sizes, where 0 means the default as in CoreDNS. */
function sizes(options: TraceOptions): typeof usualSizes {
  return {
    backlog: Math.min(options.backlog || usualSizes.backlog, most.backlog),
    batch: Math.min(options.batch || usualSizes.batch, most.batch),
    intervalMs: options.intervalMs || usualSizes.intervalMs,
  };
}

/** @param server e.g. `dns://127.0.0.1:53` */
function reporterOf(service: string, server: string): Reporter {
  const [, address = '', port = '0'] = /^[a-z0-9]+:\/\/\[?([^\]]*?)\]?:(\d+)$/.exec(server) ?? [];
  return { service, address, port: Number(port) };
}

function tagsOf(query: Query, reply: Reply): Readonly<Record<string, string>> {
  return {
    'coredns.io/name': query.name,
    'coredns.io/type': typeName(query.type),
    'coredns.io/proto': query.overStream ? 'tcp' : 'udp',
    'coredns.io/remote': query.client,
    'coredns.io/rcode': rcodeName(reply.rcode),
  };
}
