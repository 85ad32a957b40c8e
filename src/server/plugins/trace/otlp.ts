/** Spans in OpenTelemetry format. */
import { MessageBuilder } from '../../base/protobuf.ts';
import type { Span } from './span.ts';
import type { Reporter } from './zipkin.ts';

/** Field numbers of OpenTelemetry's messages (opentelemetry/proto, version 1). */
const FIELD = {
  request: { resourceSpans: 1 },
  resourceSpans: { resource: 1, scopeSpans: 2 },
  resource: { attributes: 1 },
  scopeSpans: { scope: 1, spans: 2 },
  scope: { name: 1, version: 2 },
  span: {
    traceId: 1,
    spanId: 2,
    parentSpanId: 4,
    name: 5,
    kind: 6,
    start: 7,
    end: 8,
    attributes: 9,
    status: 15,
  },
  status: { message: 2, code: 3 },
  keyValue: { key: 1, value: 2 },
  value: { string: 1, int: 3 },
} as const;

const KIND = { internal: 1, server: 2 } as const;
const STATUS_ERROR = 2;

/** Encodes spans as the body of an OTLP over HTTP request (`ExportTraceServiceRequest`, `/v1/traces`). */
export function otlpBody(spans: readonly Span[], reporter: Reporter, version: string): Buffer {
  const { resource, resourceSpans, scope, scopeSpans } = FIELD;
  const who = new MessageBuilder()
    .message(resource.attributes, attribute('service.name', reporter.service))
    .message(resource.attributes, attribute('service.version', version));
  if (reporter.address !== '')
    who.message(resource.attributes, attribute('server.address', reporter.address));
  if (reporter.port > 0) who.message(resource.attributes, attribute('server.port', reporter.port));
  const list = new MessageBuilder().message(
    scopeSpans.scope,
    new MessageBuilder().bytes(scope.name, 'ndots').bytes(scope.version, version).build(),
  );
  for (const span of spans) list.message(scopeSpans.spans, spanMessage(span));
  const body = new MessageBuilder()
    .message(resourceSpans.resource, who.build())
    .message(resourceSpans.scopeSpans, list.build());
  return new MessageBuilder().message(FIELD.request.resourceSpans, body.build()).build();
}

function spanMessage({ trace, id, parent, name, startMs, tookMs, tags, error }: Span): Buffer {
  const { span, status } = FIELD;
  const start = nanoseconds(startMs);
  const message = new MessageBuilder()
    .bytes(span.traceId, Buffer.from(trace, 'hex'))
    .bytes(span.spanId, Buffer.from(id, 'hex'));
  if (parent !== null) message.bytes(span.parentSpanId, Buffer.from(parent, 'hex'));
  message
    .bytes(span.name, name)
    .number(span.kind, parent === null ? KIND.server : KIND.internal)
    .fixed64(span.start, start)
    .fixed64(span.end, start + nanoseconds(tookMs));
  for (const [key, value] of Object.entries(tags))
    message.message(span.attributes, attribute(key, value));
  if (error !== null)
    message.message(
      span.status,
      new MessageBuilder().bytes(status.message, error).number(status.code, STATUS_ERROR).build(),
    );
  return message.build();
}

function attribute(key: string, value: string | number): Buffer {
  const { keyValue, value: kinds } = FIELD;
  const any = new MessageBuilder();
  if (typeof value === 'number') any.number(kinds.int, value);
  else any.message(kinds.string, Buffer.from(value));
  return new MessageBuilder().bytes(keyValue.key, key).message(keyValue.value, any.build()).build();
}

/** Converts milliseconds with fractions; whole ones are exact. */
function nanoseconds(ms: number): bigint {
  const whole = Math.floor(ms);
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6));
}
