/** The options of a `trace` line. */
import { Problem, type Place } from '../../base/problem.ts';
import { optional, position, type Position } from '../../corefile/positions.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { custom, fields, setting, type PropertySchema } from '../../corefile/properties.ts';
import { directive, type Options, type Syntax } from '../../corefile/syntax.ts';
import { decimal, duration, integer, word } from '../../corefile/word-values.ts';

export type CollectorKind = 'zipkin' | 'otlp';

export interface SpanCollector {
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

export const syntax: Syntax<
  { collector: Position<SpanCollector> },
  {
    every: PropertySchema<number>;
    service: PropertySchema<string>;
    clientServer: PropertySchema<boolean | null>;
    analyticsRate: PropertySchema<{ readonly rate: number | null } | null>;
    backlog: PropertySchema<number>;
    batch: PropertySchema<number>;
    intervalMs: PropertySchema<number>;
  },
  'merge'
> = directive({
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

export type TraceOptions = Options<typeof syntax>;
