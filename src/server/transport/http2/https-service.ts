import { DnsOverHttps } from './dns-over-https.ts';
import { MESSAGE_MAX } from '../../wire/iana.ts';
import type { Http2Service, RefusalCodes, RequestVerdict } from './http2-service.ts';
import { writeReplyFields, writeStatus } from './reply-fields.ts';
import type { RequestHeader } from './request-header.ts';

/** DNS over HTTPS (RFC 8484) for HTTP/2 connections; codes are HTTP statuses. */
export class HttpsService extends DnsOverHttps implements Http2Service {
  readonly bodyMax: number = MESSAGE_MAX;
  readonly grouped = false;
  readonly status = 200;
  /** 431: Request Header Fields Too Large (RFC 6585 section 5). */
  readonly refusals: RefusalCodes = { fields: 431, body: 400, query: 400, silence: 500 };
  readonly trailers: null = null;
  queryStart = 0;
  queryEnd = 0;

  judge({ method, path, pathLength }: RequestHeader): RequestVerdict {
    return this.judgeTarget(method, path, pathLength);
  }

  find(_: Uint8Array, start: number, end: number): null {
    this.queryStart = start;
    this.queryEnd = end;
    return null;
  }

  writeFields(out: Uint8Array, at: number, reply: Uint8Array, start: number, end: number): number {
    return writeReplyFields(out, at, reply, start, end);
  }

  writePrefix(_: Uint8Array, at: number): number {
    return at;
  }

  writeRefusal(out: Uint8Array, at: number, code: number): number {
    return writeStatus(out, at, code);
  }
}
