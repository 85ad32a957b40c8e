/** The validity of a server's certificate in the first segment of its TLS handshake (TLS 1.2 and earlier, where it is not encrypted). */

/** Milliseconds since 1970. */
export interface CertificateValidity {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Record and message types, and the sizes of their headers in bytes (RFC 5246, sections 6.2.1 and 7.4). */
const TLS = { handshake: 22, major: 3, recordHead: 5, messageHead: 4, certificate: 11 };
/** The lengths of the list and of the first certificate in it. Bytes; RFC 5246 section 7.4.2. */
const LENGTHS_BYTES = 6;
/** Tags (X.690; RFC 5280 section 4.1). */
const DER = { sequence: 0x30, integer: 0x02, version: 0xa0, utcTime: 0x17, generalizedTime: 0x18 };
/** Years of UTCTime from here on are of the 20th century (RFC 5280 section 4.1.2.5.1). */
const CENTURY_YEAR = 50;
const TIME = /^(\d\d)?(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;

/** Returns the validity of the first certificate in a segment; null: it has none, or only the beginning of it. */
export function certificateValidity(
  bytes: Uint8Array,
  at: number,
  end: number,
): CertificateValidity | null {
  for (let record = at; record + TLS.recordHead < end;) {
    if (bytes[record] !== TLS.handshake || bytes[record + 1] !== TLS.major) return null;
    const content = record + TLS.recordHead;
    const next = content + ((bytes[record + 3]! << 8) | bytes[record + 4]!);
    for (let message = content; message + TLS.messageHead < Math.min(next, end);) {
      const body = message + TLS.messageHead;
      if (bytes[message] === TLS.certificate)
        return validityIn(new DerReader(bytes, body + LENGTHS_BYTES, end));
      message =
        body + ((bytes[message + 1]! << 16) | (bytes[message + 2]! << 8) | bytes[message + 3]!);
    }
    record = next;
  }
  return null;
}

function validityIn(reader: DerReader): CertificateValidity | null {
  if (!reader.enter(DER.sequence) || !reader.enter(DER.sequence)) return null;
  if (reader.tag === DER.version && !reader.skip(DER.version)) return null;
  // The serial number, the signature's algorithm and the issuer.
  for (const tag of [DER.integer, DER.sequence, DER.sequence]) if (!reader.skip(tag)) return null;
  if (!reader.enter(DER.sequence)) return null;
  const [fromMs, toMs] = [reader.time(), reader.time()];
  return fromMs === null || toMs === null ? null : { fromMs, toMs };
}

/** Reads DER elements in order, as far as the segment goes. */
class DerReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
  }

  get tag(): number {
    return this.#bytes[this.#at] ?? 0;
  }

  /** Goes to the first element inside of this one. */
  enter(tag: number): boolean {
    return this.#content(tag) !== null;
  }

  skip(tag: number): boolean {
    const length = this.#content(tag);
    if (length === null) return false;
    this.#at += length;
    return true;
  }

  /** The next time, milliseconds since 1970; null: there is none. */
  time(): number | null {
    const { tag } = this;
    if (tag !== DER.utcTime && tag !== DER.generalizedTime) return null;
    const length = this.#content(tag);
    if (length === null || this.#at + length > this.#end) return null;
    const text = Buffer.from(this.#bytes.subarray(this.#at, this.#at + length)).toString('latin1');
    this.#at += length;
    const found = TIME.exec(text);
    if (found === null || (found[1] === undefined) !== (tag === DER.utcTime)) return null;
    const [year, month, day, hour, minute, second] = found.slice(2).map(Number) as [
      number,
      ...[number, number, number, number, number],
    ];
    const century = found[1] ?? (year < CENTURY_YEAR ? '20' : '19');
    return Date.UTC(Number(century) * 100 + year, month - 1, day, hour, minute, second);
  }

  /** Goes to the content of the element; returns its length in bytes, or null if it has another tag. */
  #content(tag: number): number | null {
    if (this.tag !== tag || this.#at + 2 > this.#end) return null;
    const first = this.#bytes[this.#at + 1]!;
    this.#at += 2;
    if (first < 0x80) return first;
    let length = 0;
    for (let left = first & 0x7f; left > 0; left--) {
      if (this.#at >= this.#end || length > 0xffff) return null;
      length = (length << 8) | this.#bytes[this.#at++]!;
    }
    return length;
  }
}
