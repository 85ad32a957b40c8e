import type { RequestHeader } from './request-header.ts';

/**
 * `message`: the query is in the request's target; `body`: it is in the request's body; a number: the code that refuses
 * the request.
 */
export type RequestVerdict = 'message' | 'body' | number;

/** The codes with which a service refuses requests that a connection finds invalid. */
export interface RefusalCodes {
  /** The request's fields exceed the announced limit. */
  readonly fields: number;
  /** The request's body is missing, or longer than any message. */
  readonly body: number;
  /** The message is not a query. */
  readonly query: number;
  /** A plugin asked for no reply to be sent. */
  readonly silence: number;
}

/**
 * Interprets requests and replies on HTTP/2 connections: DNS over HTTPS, or DNS over gRPC. It reads and writes header
 * blocks and the bytes around a DNS message in a body. Frames, windows and streams belong to the connection. One object
 * per listener.
 */
export interface Http2Service {
  /** Maximum size of a request's body in bytes. */
  readonly bodyMax: number;
  /** True if every client accepts several replies in one TLS record. */
  readonly grouped: boolean;
  /** The status reported in metrics for a reply with a DNS message; refusals have their own codes. */
  readonly status: number;
  readonly refusals: RefusalCodes;
  /** The header block after each reply's body; null: the body ends the reply. */
  readonly trailers: Uint8Array | null;
  judge(header: RequestHeader): RequestVerdict;
  /** The query of a request classified as `message`, `message[0, length)`; valid until the next request is checked. */
  readonly message: Uint8Array;
  readonly length: number;
  /**
   * Finds the query in a complete body, as `[queryStart, queryEnd)`.
   * @returns null, or the code that refuses it
   */
  find(body: Uint8Array, start: number, end: number): number | null;
  readonly queryStart: number;
  readonly queryEnd: number;
  /**
   * Writes the header block for a reply with the DNS message `reply[start, end)`, at most `FIELDS_MAX` bytes.
   * @returns the position after it
   */
  writeFields(out: Uint8Array, at: number, reply: Uint8Array, start: number, end: number): number;
  /**
   * Writes the bytes before a DNS message of `length` bytes in a body, at most `BODY_PREFIX_MAX`.
   * @returns the position after them
   */
  writePrefix(out: Uint8Array, at: number, length: number): number;
  /**
   * Writes the header block of a reply that has no body.
   * @returns the position after it
   */
  writeRefusal(out: Uint8Array, at: number, code: number): number;
}

/** Maximum number of bytes that a service writes before a DNS message in a body. */
export const BODY_PREFIX_MAX = 9;
