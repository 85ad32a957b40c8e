import type { RequestHeader } from './request-header.ts';

/**
 * `message`: the query is in the request's target; `body`: it is in the request's body; a number:
 * the code with which the request is refused.
 */
export type RequestVerdict = 'message' | 'body' | number;

/** With which code a service refuses what a connection finds wrong. */
export interface RefusalCodes {
  /** The request's fields take more than was announced. */
  readonly fields: number;
  /** The request's body is missing, or longer than any message. */
  readonly body: number;
  /** The message is not a query. */
  readonly query: number;
  /** A plugin wants no reply to leave. */
  readonly silence: number;
}

/**
 * The meaning of requests and replies on HTTP/2 connections: DNS over HTTPS, or DNS over gRPC. It
 * reads and writes header blocks and the bytes around a DNS message in a body. Frames, windows and
 * streams belong to the connection. One object per listener.
 */
export interface Http2Service {
  /** Bytes of a request's body at most. */
  readonly bodyMax: number;
  /** True if every client takes several replies in one TLS record. */
  readonly grouped: boolean;
  /** The status in metrics of a reply with a DNS message; refusals have their own codes. */
  readonly status: number;
  readonly refusals: RefusalCodes;
  /** The header block behind each reply's body; null: a body ends its reply. */
  readonly trailers: Uint8Array | null;
  judge(header: RequestHeader): RequestVerdict;
  /**
   * The query of a request judged `message`, `message[0, length)`; valid until the next one is
   * judged.
   */
  readonly message: Uint8Array;
  readonly length: number;
  /**
   * Finds the query in a whole body: `[queryStart, queryEnd)` of it.
   * @returns null, or the code that refuses it
   */
  find(body: Uint8Array, start: number, end: number): number | null;
  readonly queryStart: number;
  readonly queryEnd: number;
  /**
   * Writes the header block of a reply with the DNS message `reply[start, end)`, at most
   * `FIELDS_MAX` bytes.
   * @returns where it ends
   */
  writeFields(out: Uint8Array, at: number, reply: Uint8Array, start: number, end: number): number;
  /**
   * Writes the bytes before a DNS message of `length` bytes in a body, at most `BODY_PREFIX_MAX`.
   * @returns the position after them
   */
  writePrefix(out: Uint8Array, at: number, length: number): number;
  /**
   * Writes the header block of a reply without a body, which is all of it.
   * @returns where it ends
   */
  writeRefusal(out: Uint8Array, at: number, code: number): number;
}

/** Maximum bytes that a service writes before a DNS message in a body. */
export const BODY_PREFIX_MAX = 9;
