/** Upstreams whose answers come from a function. */
import { printHostPort } from '../../src/server/base/ip.ts';
import type { Clock } from '../../src/server/base/clock.ts';
import {
  ExchangeError,
  type ExchangeFailure,
} from '../../src/server/transport/upstream/upstream-exchange.ts';
import type { Protocol } from '../../src/server/wire/transports.ts';
import {
  promisedUpstream,
  type ExchangeReply,
  type Network,
  type Upstream,
  type UpstreamCounters,
  type UpstreamParts,
} from '../../src/server/transport/upstream-address.ts';
import { FLAG, rcodeNumber, typeNumber } from '../../src/server/wire/iana.ts';
import { writeMessage, type DnsRecord } from '../../src/server/wire/message.ts';
import type { EdnsOption } from '../../src/server/wire/edns.ts';
import { parseName } from '../../src/server/wire/name.ts';
import { kindOf } from '../../src/server/wire/record/table.ts';
import type { Query } from '../../src/server/transport/query.ts';
import { Words } from '../../src/server/wire/record-words.ts';

/** A query sent to an upstream. */
export interface Asked {
  /** `IP:port`. */
  readonly to: string;
  readonly proto: Protocol;
  /** The absolute name in lower case. */
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  /** The virtual time in milliseconds. */
  readonly at: number;
  readonly query: Query;
  readonly parts: UpstreamParts;
}

/** A scripted upstream's reply to a query. */
export interface Answer {
  /** The milliseconds until it answers or fails. 1 by default. */
  readonly afterMs?: number;
  /** Fail with this error instead of replying. A time-out only fails once its time is up. */
  readonly fail?: ExchangeFailure;
  readonly rcode?: string;
  /** Flags in addition to QR, RA and the query's RD, e.g. FLAG.AA. */
  readonly flags?: number;
  /** Zone file lines with a TTL but without a class, such as `@ 300 A 192.0.2.1`. `@` is the question's name. */
  readonly answer?: readonly string[];
  readonly authority?: readonly string[];
  readonly additional?: readonly string[];
  /** The reply's EDNS options, or null if it has no OPT record. */
  readonly options?: readonly EdnsOption[];
  /** Replaces the question. */
  readonly question?: string;
  /** Sends these bytes instead of a message with the fields above. */
  readonly bytes?: Uint8Array;
  readonly truncated?: boolean;
  readonly reused?: boolean;
}

/** A network without sockets, and its observable state. */
export interface ScriptedNetwork extends Network {
  readonly asked: readonly Asked[];
  /** The upstreams that were created, and those that were closed again. */
  readonly made: readonly UpstreamParts[];
  readonly closed: readonly UpstreamParts[];
}

export interface ReadableCounters extends UpstreamCounters {
  readonly counts: Record<'timeouts' | 'strays' | 'paced' | 'rejects' | 'sockets', number>;
}

/** Counters that start at 0. */
export function readableCounters(): ReadableCounters {
  const counts = { timeouts: 0, strays: 0, paced: 0, rejects: 0, sockets: 0 };
  const counter = (name: keyof typeof counts) => ({
    add(amount: number) {
      counts[name] += amount;
    },
  });
  return {
    counts,
    timeouts: counter('timeouts'),
    strays: counter('strays'),
    paced: counter('paced'),
    rejects: counter('rejects'),
    sockets: counter('sockets'),
  };
}

/** Default parts for an upstream on 127.0.0.1. */
export function upstreamParts(
  proto: Protocol,
  port: number,
  parts: Partial<UpstreamParts> = {},
): UpstreamParts {
  return {
    address: { host: '127.0.0.1', port, serverName: '' },
    proto,
    tls: null,
    expireMs: 10_000,
    maxAgeMs: 0,
    maxIdle: 0,
    sourcePorts: 64,
    maxConnections: 256,
    inFlightMax: 4096,
    burst: 128,
    source: '',
    httpMethod: 'POST',
    counters: readableCounters(),
    ...parts,
  };
}

/** Upstreams whose answers a function returns, timed by the clock. If it returns a promise, that may also take time. */
export function scriptedNetwork(
  clock: Clock,
  script: (asked: Asked) => Answer | Promise<Answer>,
): ScriptedNetwork {
  const asked: Asked[] = [];
  const made: UpstreamParts[] = [];
  const closed: UpstreamParts[] = [];
  const exchange = (
    parts: UpstreamParts,
    query: Query,
    timeoutMs: number,
  ): Promise<ExchangeReply> => {
    const { host, port } = parts.address;
    const sent: Asked = {
      to: printHostPort(host, port),
      proto: parts.proto,
      name: query.name,
      type: query.type,
      flags: query.flags | query.upstreamFlags,
      at: clock.now(),
      query,
      parts,
    };
    asked.push(sent);
    const answer = script(sent);
    return answer instanceof Promise
      ? answer.then((found) => carry(sent, found, timeoutMs))
      : carry(sent, answer, timeoutMs);
  };
  const carry = (sent: Asked, answer: Answer, timeoutMs: number): Promise<ExchangeReply> => {
    const { parts, query } = sent;
    const late = answer.fail === 'timeout' || (answer.afterMs ?? 1) >= timeoutMs;
    return new Promise((resolve, reject) => {
      clock.after(late ? timeoutMs : (answer.afterMs ?? 1), () => {
        if (late)
          reject(new ExchangeError('timeout', `read ${parts.proto} ->${sent.to}: i/o timeout`));
        else if (answer.fail !== undefined)
          reject(new ExchangeError(answer.fail, `${parts.proto} ${sent.to}: ${answer.fail}`));
        else {
          const bytes = answer.bytes ?? replyBytes(query, answer);
          const cut = answer.truncated ?? (bytes.length > 3 && (bytes[2]! & (FLAG.TC >> 8)) !== 0);
          resolve({
            bytes,
            truncated: parts.proto === 'udp' && cut,
            reused: answer.reused ?? false,
          });
        }
      });
    });
  };
  return {
    asked,
    made,
    closed,
    upstream(parts): Upstream {
      made.push(parts);
      return promisedUpstream(
        parts,
        (query, timeoutMs) => exchange(parts, query, timeoutMs),
        () => clock.now(),
        () => closed.push(parts),
      );
    },
  };
}

export function replyBytes(query: Query, answer: Answer): Uint8Array {
  const name = answer.question ?? query.name;
  return writeMessage({
    id: query.id,
    flags: FLAG.QR | FLAG.RA | (query.flags & FLAG.RD) | (answer.flags ?? 0),
    rcode: rcodeNumber(answer.rcode ?? 'NOERROR')!,
    question: [{ name, type: query.type, class: query.class }],
    answer: records(answer.answer, name),
    authority: records(answer.authority, name),
    additional: records(answer.additional, name),
    edns:
      answer.options === undefined
        ? null
        : { udpSize: 1232, version: 0, dnssecOk: false, options: answer.options },
  });
}

function records(lines: readonly string[] | undefined, name: string): DnsRecord[] {
  return (lines ?? []).map((line) => {
    const [owner, ttl, type, ...words] = line.split(/\s+/);
    const number = typeNumber(type!)!;
    const kind = kindOf(number);
    if (kind === undefined) throw new Error(`no such type: ${type}`);
    const data = kind.parse(new Words(words, parseName(name)));
    return { name: owner === '@' ? name : owner!, type: number, class: 1, ttl: Number(ttl), data };
  });
}
