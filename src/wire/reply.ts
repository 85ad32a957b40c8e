import { EDE, FLAG, HEADER, RCODE } from './iana.ts';

/** An Extended DNS Error (RFC 8914) that tells a client why. */
export interface ExtendedError {
  readonly code: number;
  readonly text: string;
}

/** Makes the message that follows; null: not in this turn. */
export type Rest = () => Reply | null;

/** All that a reply is made of. */
export interface ReplyFields {
  /** The message lies in `bytes` from `start` up to `end` (exclusive); equal: a bare reply. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** All 12 bits, the EDNS part included. */
  readonly rcode: number;
  /** Name of the plugin that made it. */
  readonly plugin: string;
  /** Ascending offsets (from `start`) of the TTL fields that `ttl` replaces; null: all stay as they stand. */
  readonly ttlAt: Uint16Array | null;
  /** Seconds to put into every TTL field of `ttlAt`; -1: leave them. */
  readonly ttl: number;
  /** EDNS options for clients that speak EDNS, wire form, perhaps empty; null: the usual echo. */
  readonly options: Uint8Array | null;
  /** Extended errors for clients that speak EDNS. */
  readonly errors: readonly ExtendedError[] | null;
  /** Why, when it is a failure: for `errors`, the log, the tracer. */
  readonly cause: Error | null;
  /**
   * The message that follows this one, for answers that take several (transfers); null: none does. It is asked for once the one
   * before has been written, in another turn, so that nothing else waits; where it gives null it is asked again, in another turn.
   * Streams only: over other transports nothing follows.
   */
  readonly rest: Rest | null;
}

/**
 * One reply, client-independent: header, question and records, but no OPT and nothing of the asking client. All that is
 * the client's own (id, RD and CD, spelling of the question, EDNS, size limit) is written by `stamp`. Owner names that
 * equal the question point at it, so the client's spelling (0x20) reaches them too.
 *
 * It never changes, and neither do its bytes: who needs another one asks `with`. A reply without bytes (`bare`) is a result
 * code that nobody wrote a message for: `stamp` writes header and question.
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
    ttlAt: Uint16Array | null = null,
    ttl = -1,
    options: Uint8Array | null = null,
    errors: readonly ExtendedError[] | null = null,
    cause: Error | null = null,
    rest: Rest | null = null,
  ) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.rcode = rcode;
    this.plugin = plugin;
    this.ttlAt = ttlAt;
    this.ttl = ttl;
    this.options = options;
    this.errors = errors;
    this.cause = cause;
    this.rest = rest;
  }

  /**
   * The same reply with some fields changed. Offsets in `ttlAt` belong to the layout of the message: who changes the
   * layout names `ttlAt` too.
   */
  with(change: Partial<ReplyFields>): Reply {
    return new Reply(
      change.bytes ?? this.bytes,
      change.start ?? this.start,
      change.end ?? this.end,
      change.rcode ?? this.rcode,
      change.plugin ?? this.plugin,
      change.ttlAt === undefined ? this.ttlAt : change.ttlAt,
      change.ttl ?? this.ttl,
      change.options === undefined ? this.options : change.options,
      change.errors === undefined ? this.errors : change.errors,
      change.cause === undefined ? this.cause : change.cause,
      change.rest === undefined ? this.rest : change.rest,
    );
  }

  /** Only a result code, no message. */
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

  /** Length of the message, without what `stamp` adds. */
  get size(): number {
    return this.end - this.start;
  }

  /** The same reply on bytes of its own, for who stores it: does not hold on to the slab that it was written in. */
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

/** Nothing is sent: the client hears silence. */
export const silence: Reply = new Reply(nothing, 0, 0, RCODE.NOERROR, '');

/** A result code without a message (CoreDNS: a returned rcode with nothing written). Never cached. */
export function failure(
  rcode: number,
  plugin: string,
  cause: Error | null = null,
  errors: readonly ExtendedError[] | null = null,
): Reply {
  return new Reply(nothing, 0, 0, rcode, plugin, null, -1, null, errors, cause);
}

/** The query would have to wait while too many others do (`Query.mayWait`): the client may ask elsewhere, or later. */
export const overloaded: Reply = failure(RCODE.REFUSED, '', null, [
  { code: EDE.OTHER, text: 'too many queries wait for their replies' },
]);
