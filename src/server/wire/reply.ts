import { EDE, FLAG, HEADER, RCODE } from './iana.ts';

/** An Extended DNS Error (RFC 8914), which gives the client the reason for the result code. */
export interface ExtendedError {
  readonly code: number;
  readonly text: string;
}

/**
 * Creates the next message in a multi-message answer. Returns null if it is not ready in this turn of the event loop.
 */
export type Rest = () => Reply | null;

/** The message and metadata that every reply has. */
interface ReplyMessage {
  /** The message is `bytes[start, end)`. If `start` equals `end`, this is a bare reply, which has no message. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** All 12 bits, including EDNS's upper eight. */
  readonly rcode: number;
  /** Name of the plugin that created it. */
  readonly plugin: string;
}

/** The parts of a reply that are rarely used, in addition to its message. */
export interface ReplyDetails {
  /** Ascending offsets (from `start`) of the TTL fields that `ttl` replaces. If null, all stay unchanged. */
  readonly ttlAt: Uint16Array | null;
  /** Seconds to write into every TTL field in `ttlAt`, or -1 to leave them unchanged. */
  readonly ttl: number;
  /**
   * EDNS options in wire form for clients that support EDNS. There may be none. If null, the query's options are echoed
   * as usual.
   */
  readonly options: Uint8Array | null;
  /** Extended errors for clients that support EDNS. */
  readonly errors: readonly ExtendedError[] | null;
  /** The cause of a failure, for `errors`, the log and traces. */
  readonly cause: Error | null;
  /**
   * Creates the message that follows this one in a multi-message answer (a zone transfer). Null if this is the last. It
   * is called in a later turn than the one that wrote the previous message, so that other queries are served in
   * between. If it returns null, it is called again in a later turn. Only streams can transport more than one message.
   */
  readonly rest: Rest | null;
}

export type ReplyFields = ReplyMessage & ReplyDetails;

/** Most replies have no details. */
const none: Partial<ReplyDetails> = {};

/**
 * A reply, which is identical for every client: header, question and records, but no OPT and nothing specific to a
 * client. `stamp` fills in the id, RD and CD, the question's spelling, EDNS and the size limit. Owner names equal to
 * the question are pointers to it, so that they adopt the client's spelling (0x20) as well. A reply and its bytes never
 * change; `with` creates a changed copy. A reply without bytes (`bare`) is only a result code, for which `stamp` writes
 * the header and the question.
 */
export class Reply implements ReplyFields {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly rcode: number;
  readonly plugin: string;
  readonly ttlAt: Uint16Array | null;
  readonly ttl: number;
  readonly options: Uint8Array | null;
  readonly errors: readonly ExtendedError[] | null;
  readonly cause: Error | null;
  readonly rest: Rest | null;

  constructor(
    bytes: Uint8Array,
    start: number,
    end: number,
    rcode: number,
    plugin: string,
    details: Partial<ReplyDetails> = none,
  ) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.rcode = rcode;
    this.plugin = plugin;
    this.ttlAt = details.ttlAt ?? null;
    this.ttl = details.ttl ?? -1;
    this.options = details.options ?? null;
    this.errors = details.errors ?? null;
    this.cause = details.cause ?? null;
    this.rest = details.rest ?? null;
  }

  /**
   * Returns the same reply with some fields changed. The offsets in `ttlAt` depend on the message's layout, so changing
   * `bytes` also requires a new `ttlAt`.
   */
  with(change: Partial<ReplyFields>): Reply {
    return new Reply(
      change.bytes ?? this.bytes,
      change.start ?? this.start,
      change.end ?? this.end,
      change.rcode ?? this.rcode,
      change.plugin ?? this.plugin,
      {
        ttlAt: change.ttlAt === undefined ? this.ttlAt : change.ttlAt,
        ttl: change.ttl ?? this.ttl,
        options: change.options === undefined ? this.options : change.options,
        errors: change.errors === undefined ? this.errors : change.errors,
        cause: change.cause === undefined ? this.cause : change.cause,
        rest: change.rest === undefined ? this.rest : change.rest,
      },
    );
  }

  /** Returns a copy of the message with a different result code, of four bits. */
  recoded(rcode: number): Reply {
    const bytes = this.bytes.slice(this.start, this.end);
    bytes[3] = (bytes[3]! & ~FLAG.RCODE) | rcode;
    return this.with({ bytes, start: 0, end: bytes.length, rcode });
  }

  /** True if this is only a result code, without a message. */
  get bare(): boolean {
    return this.start === this.end;
  }

  get flags(): number {
    return this.bare ? 0 : (this.bytes[this.start + 2]! << 8) | this.bytes[this.start + 3]!;
  }

  get authoritative(): boolean {
    return (this.flags & FLAG.AA) !== 0;
  }

  get truncated(): boolean {
    return (this.flags & FLAG.TC) !== 0;
  }

  /** Number of records in the answer section. */
  get answers(): number {
    return this.#count(HEADER.ANCOUNT);
  }

  /** Number of records in the authority section. */
  get authority(): number {
    return this.#count(HEADER.NSCOUNT);
  }

  /** Number of records in the additional section, which never includes OPT. */
  get additional(): number {
    return this.#count(HEADER.ARCOUNT);
  }

  #count(at: number): number {
    if (this.bare) return 0;
    return (this.bytes[this.start + at]! << 8) | this.bytes[this.start + at + 1]!;
  }

  /** Length of the message before `stamp` adds anything. */
  get size(): number {
    return this.end - this.start;
  }

  /**
   * Returns the same reply in memory of its own, for long-term storage, so that it does not keep the whole slab alive.
   */
  own(): Reply {
    return this.with({
      bytes: this.bytes.slice(this.start, this.end),
      start: 0,
      end: this.size,
      options: this.options?.slice() ?? null,
    });
  }
}

const nothing = new Uint8Array(0);

/** Sends nothing at all, so the client times out. */
export const silence: Reply = new Reply(nothing, 0, 0, RCODE.NOERROR, '');

/**
 * Creates a result code without a message (in CoreDNS, an rcode that a plugin returns without writing). Never cached.
 */
export function failure(
  rcode: number,
  plugin: string,
  cause: Error | null = null,
  errors: readonly ExtendedError[] | null = null,
): Reply {
  return new Reply(nothing, 0, 0, rcode, plugin, {
    errors: errors ?? defaultErrors(rcode, plugin),
    cause,
  });
}

/** Names the part of the server that failed, but not the cause, because clients may not be allowed to see it. */
function defaultErrors(rcode: number, plugin: string): readonly ExtendedError[] | null {
  if (rcode !== RCODE.SERVFAIL && rcode !== RCODE.REFUSED) return null;
  const by = plugin === '' ? 'the server' : `plugin ${plugin}`;
  return rcode === RCODE.REFUSED
    ? [{ code: EDE.PROHIBITED, text: `${by} refuses this query` }]
    : [{ code: EDE.OTHER, text: `${by} could not answer` }];
}

/**
 * Creates REFUSED, because the query would have to wait and too many others are already waiting (`Query.mayWait`). The
 * client may try another server, or try again later.
 */
export const overloaded: Reply = failure(RCODE.REFUSED, '', null, [
  { code: EDE.OTHER, text: 'too many queries wait for their replies' },
]);
