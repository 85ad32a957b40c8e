/** The server side of DNS over gRPC, covering both requests and replies. */
import { MESSAGE_MAX } from '../../wire/iana.ts';
import type { Http2Service, RefusalCodes, RequestVerdict } from '../http2/http2-service.ts';
import { copy, FIELDS_MAX, okFields, writeStatus } from '../http2/reply-fields.ts';
import { named } from '../http2/request-fields.ts';
import type { RequestHeader } from '../http2/request-header.ts';
import { DnsPacketReader, PACKET_PREFIX_MAX, QUERY_PATH, writePacketPrefix } from './dns-packet.ts';
import { STATUS } from './grpc-failure.ts';
import { PREFIX } from './grpc-stream.ts';

const PATH = Buffer.from(QUERY_PATH);
/** Method Not Allowed and Unsupported Media Type. Requests that are not gRPC are refused with an HTTP status. */
const METHOD = 405;
const MEDIA = 415;

const fields = okFields('application/grpc');

/** Refusal messages for the client. */
const texts: Readonly<Record<number, string>> = {
  [STATUS.UNKNOWN]: 'no DNS query',
  [STATUS.UNIMPLEMENTED]: 'unknown method, or a compressed message',
  [STATUS.RESOURCE_EXHAUSTED]: 'longer than any DNS message',
  [STATUS.INTERNAL]: 'not a gRPC message',
  [STATUS.UNAVAILABLE]: 'no reply',
};

/**
 * DNS over gRPC (CoreDNS's `coredns.dns.DnsService`) on HTTP/2 connections. Codes are gRPC statuses, or HTTP statuses
 * if the request is not gRPC.
 */
export class GrpcService implements Http2Service {
  readonly bodyMax: number = PREFIX + PACKET_PREFIX_MAX + MESSAGE_MAX;
  readonly grouped = true;
  readonly status: number = STATUS.OK;
  readonly refusals: RefusalCodes = {
    fields: STATUS.RESOURCE_EXHAUSTED,
    body: STATUS.RESOURCE_EXHAUSTED,
    query: STATUS.UNKNOWN,
    silence: STATUS.UNAVAILABLE,
  };
  readonly trailers: Uint8Array = named('grpc-status', String(STATUS.OK));
  readonly message: Uint8Array = new Uint8Array(0);
  readonly length = 0;
  readonly #packet = new DnsPacketReader();
  readonly #refusals = new Map<number, Uint8Array>();

  get queryStart(): number {
    return this.#packet.start;
  }

  get queryEnd(): number {
    return this.#packet.end;
  }

  judge({ method, path, pathLength, isGrpc }: RequestHeader): RequestVerdict {
    if (method !== 'POST') return METHOD;
    if (!isGrpc) return MEDIA;
    if (pathLength !== PATH.length) return STATUS.UNIMPLEMENTED;
    for (let i = 0; i < pathLength; i++) if (path[i] !== PATH[i]) return STATUS.UNIMPLEMENTED;
    return 'body';
  }

  /** The body must be one complete, uncompressed gRPC message that contains a `DnsPacket`. */
  find(body: Uint8Array, start: number, end: number): number | null {
    if (end - start < PREFIX) return STATUS.INTERNAL;
    if (body[start] === 1) return STATUS.UNIMPLEMENTED;
    const size =
      body[start + 1]! * 0x100_0000 +
      ((body[start + 2]! << 16) | (body[start + 3]! << 8) | body[start + 4]!);
    if (body[start] !== 0 || size !== end - start - PREFIX) return STATUS.INTERNAL;
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
    return this.#packet.read(bytes, start + PREFIX, end) === null ? null : STATUS.INTERNAL;
  }

  writeFields(out: Uint8Array, at: number): number {
    return copy(fields, out, at);
  }

  writePrefix(out: Uint8Array, at: number, length: number): number {
    return writePacketPrefix(out, at, length);
  }

  writeRefusal(out: Uint8Array, at: number, code: number): number {
    let block = this.#refusals.get(code);
    if (block === undefined) this.#refusals.set(code, (block = refusal(code)));
    return copy(block, out, at);
  }
}

/** Builds the header block for a reply that consists only of a status ("Trailers-Only"). */
function refusal(code: number): Uint8Array {
  if (code >= 100) {
    const block = new Uint8Array(FIELDS_MAX);
    return block.subarray(0, writeStatus(block, 0, code));
  }
  return Buffer.concat([
    fields,
    named('grpc-status', String(code)),
    named('grpc-message', texts[code] ?? ''),
  ]);
}
