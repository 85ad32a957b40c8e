import { FLAG, HEADER, RCODE } from './iana.ts';

/** An Extended DNS Error (RFC 8914) that tells a client why. */
export interface ExtendedError {
  readonly code: number;
  readonly text: string;
}

/**
 * One reply, client-independent: header, question and records, but no OPT and nothing of the asking client. All that is
 * the client's own (id, RD and CD, spelling of the question, EDNS, size limit) is written by `stamp`. Owner names that
 * equal the question point at it, so the client's spelling (0x20) reaches them too.
 *
 * The bytes are immutable. A reply without bytes (`bare`) is a result code that nobody wrote a message for: `stamp`
 * writes header and question.
 */
export class Reply {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** All 12 bits, the EDNS part included. */
  readonly rcode: number;
  /** Name of the plugin that made it. */
  readonly plugin: string;
  /** Ascending offsets (from `start`) of the TTL fields that `ttl` replaces; null: all stay as they stand. */
  ttlAt: Uint16Array | null = null;
  /** Seconds to put into every TTL field of `ttlAt`; -1: leave them. */
  ttl = -1;
  /** EDNS options for clients that speak EDNS, wire form, perhaps empty; null: the usual echo. */
  options: Uint8Array | null = null;
  /** Extended errors for clients that speak EDNS. */
  errors: readonly ExtendedError[] | null = null;
  /** Why, when it is a failure: for `errors`, the log, the tracer. */
  cause: Error | null = null;

  constructor(bytes: Uint8Array, start: number, end: number, rcode: number, plugin: string) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.rcode = rcode;
    this.plugin = plugin;
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
    const copy = new Reply(
      this.bytes.slice(this.start, this.end),
      0,
      this.size,
      this.rcode,
      this.plugin,
    );
    copy.ttlAt = this.ttlAt;
    copy.ttl = this.ttl;
    copy.options = this.options === null ? null : this.options.slice();
    copy.errors = this.errors;
    copy.cause = this.cause;
    return copy;
  }
}

const nothing = new Uint8Array(0);

/** Nothing is sent: the client hears silence. */
export const silence: Reply = new Reply(nothing, 0, 0, RCODE.NOERROR, '');

/** A result code without a message (CoreDNS: a returned rcode with nothing written). Never cached. */
export function failure(rcode: number, plugin: string, cause: Error | null = null): Reply {
  const reply = new Reply(nothing, 0, 0, rcode, plugin);
  reply.cause = cause;
  return reply;
}
