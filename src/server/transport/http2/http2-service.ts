import type { RequestHeader } from './request-header.ts';

/**
 * `message` means that the query is in the request's target, and `body` that it is in the request's body. A number is
 * the code used to refuse the request.
 */
export type RequestVerdict = 'message' | 'body' | number;

/** The codes a service uses to refuse requests that the connection found invalid. */
export interface RefusalCodes {
  /** The request's fields exceed the announced limit. */
  readonly fields: number;
  /** The request's body is missing, or is longer than a DNS message can be. */
  readonly body: number;
  /** The message is not a query. */
  readonly query: number;
  /** A plugin decided that no reply should be sent. */
  readonly silence: number;
}

/**
 * Interprets requests and replies on HTTP/2 connections, for either DNS over HTTPS or DNS over gRPC. It reads and
 * writes header blocks, and the bytes around a DNS message in a body. Frames, windows and streams are handled by the
 * connection. There is one object per listener.
 */
export interface Http2Service {
  /** Maximum size of a request's body in bytes. */
  readonly bodyMax: number;
  /** True if every client accepts several replies in one TLS record. */
  readonly grouped: boolean;
  /** The status that metrics report for a reply with a DNS message. Refusals have their own codes. */
  readonly status: number;
  readonly refusals: RefusalCodes;
  /** The header block that follows each reply's body, or null if the reply ends with the body. */
  readonly trailers: Uint8Array | null;
  judge(header: RequestHeader): RequestVerdict;
  /** The query of a request classified as `message`, `message[0, length)`; valid until the next request is checked. */
  readonly message: Uint8Array;
  readonly length: number;
  /**
   * Finds the query in a complete body, as `[queryStart, queryEnd)`.
   * @returns null, or the code used to refuse the request
   */
  find(body: Uint8Array, start: number, end: number): number | null;
  readonly queryStart: number;
  readonly queryEnd: number;
  /**
   * Writes the header block for a reply with the DNS message `reply[start, end)`, using at most `FIELDS_MAX` bytes.
   * @returns the position after it
   */
  writeFields(out: Uint8Array, at: number, reply: Uint8Array, start: number, end: number): number;
  /**
   * Writes the part of a body that precedes a DNS message of `length` bytes, at most `BODY_PREFIX_MAX` bytes.
   * @returns the position after it
   */
  writePrefix(out: Uint8Array, at: number, length: number): number;
  /**
   * Writes the header block for a reply that has no body.
   * @returns the position after it
   */
  writeRefusal(out: Uint8Array, at: number, code: number): number;
}

/** Maximum number of bytes that a service writes before a DNS message in a body. */
export const BODY_PREFIX_MAX = 9;
