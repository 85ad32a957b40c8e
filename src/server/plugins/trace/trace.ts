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
import { syntax, type TraceOptions } from './trace-options.ts';
import { otlpBody } from './otlp.ts';
import { SpanQueue } from './span-queue.ts';
import { TraceRecorder } from './recorder.ts';
import type { Span, SpanBatch, Taken } from './span.ts';
import { zipkinBody, type Reporter } from './zipkin.ts';

/** Interval in ms after which a worker sends a batch even if it is not full. */
const FLUSH_MS = 200;
const usual = { backlog: 1000, batch: 100, intervalMs: 1000 };
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
function sizes(options: TraceOptions): typeof usual {
  return {
    backlog: Math.min(options.backlog || usual.backlog, most.backlog),
    batch: Math.min(options.batch || usual.batch, most.batch),
    intervalMs: options.intervalMs || usual.intervalMs,
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
