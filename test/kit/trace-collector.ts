/** A strict span collector. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { MessageReader, WIRE } from '../../src/server/base/protobuf.ts';

/** A span in the form in which the collector understood it. */
export interface CollectedSpan {
  readonly service: string;
  readonly trace: string;
  readonly id: string;
  readonly parent: string | null;
  readonly name: string;
  readonly isServer: boolean;
  /** Microseconds. */
  readonly start: number;
  readonly duration: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly error: string | null;
}

/** Accepts Zipkin's JSON at `/api/v2/spans` and OTLP protocol buffers at `/v1/traces`. */
export class TraceCollector {
  readonly spans: CollectedSpan[] = [];
  /** Faults in the requests. */
  readonly problems: string[] = [];
  requests = 0;
  /** The status to reply with. */
  status = 202;
  /** True to leave requests unanswered. */
  silent = false;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request: IncomingMessage, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        this.requests++;
        if (this.silent) return;
        try {
          this.#take(request, Buffer.concat(chunks));
        } catch (error) {
          this.problems.push(String(error));
        }
        response.statusCode = this.status;
        response.end();
      });
    });
  }

  static async start(): Promise<TraceCollector> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TraceCollector(server);
  }

  get at(): string {
    const address = this.#server.address();
    return `127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #take(request: IncomingMessage, body: Buffer): void {
    check(request.method === 'POST', `method ${request.method}`);
    const type = request.headers['content-type'];
    if (request.url === '/api/v2/spans') {
      check(type === 'application/json', `content type ${type}`);
      const list: unknown = JSON.parse(body.toString('utf8'));
      check(Array.isArray(list) && list.length > 0, 'no list of spans');
      const read = (list as readonly unknown[]).map((span) => zipkinSpan(span));
      if (this.status < 300) this.spans.push(...read);
    } else if (request.url === '/v1/traces') {
      check(type === 'application/x-protobuf', `content type ${type}`);
      const read = otlpSpans(body);
      if (this.status < 300) this.spans.push(...read);
    } else check(false, `path ${request.url}`);
  }
}

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/** The fields of `Span` and their types, from Zipkin's OpenAPI document (zipkin2-api.yaml). */
const zipkinFields: Readonly<Record<string, (value: unknown) => boolean>> = {
  traceId: (value) => /^(?:[0-9a-f]{16}|[0-9a-f]{32})$/.test(String(value)),
  id: (value) => /^[0-9a-f]{16}$/.test(String(value)),
  parentId: (value) => /^[0-9a-f]{16}$/.test(String(value)),
  name: (value) => typeof value === 'string' && value !== '',
  kind: (value) => ['CLIENT', 'SERVER', 'PRODUCER', 'CONSUMER'].includes(String(value)),
  timestamp: (value) => Number.isSafeInteger(value) && Number(value) > 1e15,
  duration: (value) => Number.isSafeInteger(value) && Number(value) >= 1,
  debug: (value) => typeof value === 'boolean',
  shared: (value) => typeof value === 'boolean',
  localEndpoint: isEndpoint,
  remoteEndpoint: isEndpoint,
  annotations: (value) => Array.isArray(value),
  tags: (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((text) => typeof text === 'string'),
};

function isEndpoint(value: unknown): boolean {
  const fields: Readonly<Record<string, string>> = {
    serviceName: 'string',
    ipv4: 'string',
    ipv6: 'string',
    port: 'number',
  };
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).every(([name, field]) => typeof field === fields[name])
  );
}

function zipkinSpan(value: unknown): CollectedSpan {
  check(typeof value === 'object' && value !== null, 'a span is not an object');
  const span = value as Record<string, unknown>;
  for (const [name, field] of Object.entries(span)) {
    const holds = zipkinFields[name];
    check(holds !== undefined, `a span has no field ${name}`);
    check(holds(field), `field ${name} is ${JSON.stringify(field)}`);
  }
  for (const name of ['traceId', 'id', 'name', 'timestamp', 'duration', 'localEndpoint'])
    check(name in span, `field ${name} is missing`);
  const { error = null, ...tags } = (span['tags'] ?? {}) as Record<string, string>;
  return {
    service: (span['localEndpoint'] as { serviceName: string }).serviceName,
    trace: String(span['traceId']),
    id: String(span['id']),
    parent: (span['parentId'] as string | undefined) ?? null,
    name: String(span['name']),
    isServer: span['kind'] === 'SERVER',
    start: Number(span['timestamp']),
    duration: Number(span['duration']),
    tags,
    error,
  };
}

type Shape = Readonly<Record<number, { readonly kind: number; readonly each?: Shape }>>;

const text = { kind: WIRE.bytes };
const number = { kind: WIRE.varint };
const fixed = { kind: WIRE.fixed64 };
const anyValue: Shape = { 1: text, 2: number, 3: number, 4: fixed, 7: text };
const keyValue: Shape = { 1: text, 2: { kind: WIRE.bytes, each: anyValue } };
const attributes = { kind: WIRE.bytes, each: keyValue };
/** The fields and their encoding, from opentelemetry/proto/collector/trace/v1. */
const request: Shape = {
  1: {
    kind: WIRE.bytes,
    each: {
      1: { kind: WIRE.bytes, each: { 1: attributes, 2: number } },
      2: {
        kind: WIRE.bytes,
        each: {
          1: { kind: WIRE.bytes, each: { 1: text, 2: text, 3: attributes, 4: number } },
          2: {
            kind: WIRE.bytes,
            each: {
              1: text,
              2: text,
              3: text,
              4: text,
              5: text,
              6: number,
              7: fixed,
              8: fixed,
              9: attributes,
              10: number,
              12: number,
              14: number,
              15: { kind: WIRE.bytes, each: { 2: text, 3: number } },
              16: { kind: WIRE.fixed32 },
            },
          },
          3: text,
        },
      },
      3: text,
    },
  },
};

interface Field {
  readonly field: number;
  readonly bytes: Buffer;
  readonly number: number;
  readonly fields: readonly Field[];
}

function parse(bytes: Buffer, shape: Shape): readonly Field[] {
  const found: Field[] = [];
  for (const reader = new MessageReader().over(bytes); reader.next();) {
    const known = shape[reader.field];
    check(known !== undefined, `there is no field ${reader.field}`);
    check(known.kind === reader.kind, `field ${reader.field} is written as ${reader.kind}`);
    const own = reader.kind === WIRE.bytes ? Buffer.from(reader.bytes()) : Buffer.alloc(0);
    found.push({
      field: reader.field,
      bytes: own,
      number: reader.kind === WIRE.bytes ? 0 : reader.number(),
      fields: known.each === undefined ? [] : parse(own, known.each),
    });
  }
  return found;
}

function all(fields: readonly Field[], field: number): readonly Field[] {
  return fields.filter((one) => one.field === field);
}

function attributesOf(fields: readonly Field[]): Record<string, string> {
  return Object.fromEntries(
    fields.map(({ fields: pair }) => {
      const [value] = all(pair, 2)[0]!.fields;
      const said = value!.field === 1 ? value!.bytes.toString() : String(value!.number);
      return [all(pair, 1)[0]!.bytes.toString(), said];
    }),
  );
}

function otlpSpans(body: Buffer): readonly CollectedSpan[] {
  return all(parse(body, request), 1).flatMap(({ fields: resourceSpans }) => {
    const [resource] = all(resourceSpans, 1);
    const service = attributesOf(all(resource!.fields, 1))['service.name'];
    check(service !== undefined, 'service.name is missing');
    return all(resourceSpans, 2).flatMap(({ fields: scopeSpans }) =>
      all(scopeSpans, 2).map(({ fields }) => otlpSpan(fields, service)),
    );
  });
}

function otlpSpan(fields: readonly Field[], service: string): CollectedSpan {
  const one = (field: number): Field | undefined => all(fields, field)[0];
  const trace = one(1)!.bytes;
  const id = one(2)!.bytes;
  check(trace.length === 16 && trace.some((byte) => byte !== 0), 'no trace id');
  check(id.length === 8 && id.some((byte) => byte !== 0), 'no span id');
  const [start, end] = [one(7)!.number, one(8)!.number];
  check(start > 1e18 && end >= start, `from ${start} to ${end}`);
  const [status] = all(fields, 15);
  return {
    service,
    trace: trace.toString('hex'),
    id: id.toString('hex'),
    parent: one(4)?.bytes.toString('hex') ?? null,
    name: one(5)!.bytes.toString(),
    isServer: one(6)!.number === 2,
    start: start / 1000,
    duration: (end - start) / 1000,
    tags: attributesOf(all(fields, 9)),
    error: status === undefined ? null : (all(status.fields, 2)[0]?.bytes.toString() ?? ''),
  };
}
