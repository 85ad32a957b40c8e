import { EDE, FLAG, HEADER, RCODE } from './iana.ts';

/** An Extended DNS Error (RFC 8914): tells the client why it got this result code. */
export interface ExtendedError {
  readonly code: number;
  readonly text: string;
}

/**
 * Makes the next message of an answer that takes several; null: not ready in this turn of the event
 * loop.
 */
export type Rest = () => Reply | null;

/** The message of a reply, as bytes and in words; every reply has these. */
interface ReplyMessage {
  /**
   * The message is `bytes[start, end)`; `start` equal to `end` means a bare reply, which has no
   * message.
   */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** All 12 bits, EDNS's upper eight included. */
  readonly rcode: number;
  /** Name of the plugin that made it. */
  readonly plugin: string;
}

/** The rare parts of a reply beside its message. */
export interface ReplyDetails {
  /**
   * Ascending offsets (from `start`) of the TTL fields that `ttl` replaces; null: all stay
   * unchanged.
   */
  readonly ttlAt: Uint16Array | null;
  /** Seconds to put into every TTL field of `ttlAt`; -1: leave them. */
  readonly ttl: number;
  /**
   * EDNS options for clients that speak EDNS, in wire form, may be empty; null: those of the query
   * are echoed as usual.
   */
  readonly options: Uint8Array | null;
  /** Extended errors for clients that speak EDNS. */
  readonly errors: readonly ExtendedError[] | null;
  /** The cause of a failure, for `errors`, the log and traces. */
  readonly cause: Error | null;
  /**
   * Makes the message that follows this one, for answers of several messages (zone transfers);
   * null: this is the last. It is called in a later turn than the one that wrote the previous
   * message, so that other queries are served in between. If it returns null, it is called again in
   * a later turn. Only streams carry more than one message.
   */
  readonly rest: Rest | null;
}

export type ReplyFields = ReplyMessage & ReplyDetails;

/** Of most replies: no details. */
const none: Partial<ReplyDetails> = {};

/**
 * One reply, the same for every client: header, question and records, but no OPT and nothing that
 * belongs to the asking client. Id, RD and CD, the spelling of the question, EDNS and the size
 * limit are filled in by `stamp`. Owner names that equal the question are pointers to it, so that
 * they take on the client's spelling (0x20) as well.
 *
 * A reply and its bytes never change; `with` makes a changed one. A reply without bytes (`bare`) is
 * only a result code: `stamp` writes its header and question.
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
   * The same reply with some fields changed. The offsets in `ttlAt` belong to the layout of the
   * message: a change of `bytes` needs a new `ttlAt`, too.
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

  /** Records in the answer section. */
  get answers(): number {
    return this.#count(HEADER.ANCOUNT);
  }

  /** Records in the authority section. */
  get authority(): number {
    return this.#count(HEADER.NSCOUNT);
  }

  /** Records in the additional section (OPT is never among them). */
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

  /** The same reply with its own bytes, for long storage: it no longer keeps the whole slab in memory. */
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

/** Nothing is sent at all; the client will time out. */
export const silence: Reply = new Reply(nothing, 0, 0, RCODE.NOERROR, '');

/**
 * A result code without a message (in CoreDNS: an rcode that a plugin returns without writing).
 * Never cached.
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

/** Names the part of the server that failed, without the cause, which may not be for clients. */
function defaultErrors(rcode: number, plugin: string): readonly ExtendedError[] | null {
  if (rcode !== RCODE.SERVFAIL && rcode !== RCODE.REFUSED) return null;
  const by = plugin === '' ? 'the server' : `plugin ${plugin}`;
  return rcode === RCODE.REFUSED
    ? [{ code: EDE.PROHIBITED, text: `${by} refuses this query` }]
    : [{ code: EDE.OTHER, text: `${by} could not answer` }];
}

/**
 * REFUSED, because the query would have to wait while too many others already do (`Query.mayWait`):
 * the client may ask another server, or later.
 */
export const overloaded: Reply = failure(RCODE.REFUSED, '', null, [
  { code: EDE.OTHER, text: 'too many queries wait for their replies' },
]);
