import { BLOCK_MAX, HeaderDecoder, isSame } from './header-decoder.ts';

/**
 * The kind of header block: a request, trailers, a block larger than announced, a violation of HTTP's rules, or not a
 * header block at all. A block of the last kind is too long to be read to its end.
 */
export type HeaderVerdict =
  | 'request'
  | 'trailers'
  | 'too-large'
  | 'malformed'
  | 'broken'
  | 'excessive';

/**
 * Maximum size of a request's fields (SETTINGS_MAX_HEADER_LIST_SIZE, RFC 9113 section 6.5.2). A few bytes in a block
 * can refer to a long field in the table again and again.
 */
export const LIST_MAX: number = BLOCK_MAX;
/** A legitimate request is never larger. A thousand fields take as long to read as fifty requests. */
const LIST_BREAK = 4 * LIST_MAX;
/** Overhead per field, in addition to its bytes. */
const FIELD_COST = 32;

const names = {
  method: Buffer.from(':method'),
  scheme: Buffer.from(':scheme'),
  path: Buffer.from(':path'),
  authority: Buffer.from(':authority'),
  contentLength: Buffer.from('content-length'),
  contentType: Buffer.from('content-type'),
  te: Buffer.from('te'),
};
const GET = Buffer.from('GET');
const POST = Buffer.from('POST');
const TRAILERS = Buffer.from('trailers');
/** Connection-specific fields, which HTTP/2 does not allow (RFC 9113 section 8.2.2). */
const ofConnection = [
  'connection',
  'proxy-connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
].map((name) => Buffer.from(name));

const GRPC = Buffer.from('application/grpc');
const PROTO = Buffer.from('+proto');
const COLON = 0x3a;
const SEMICOLON = 0x3b;

/** Large enough for any target. One buffer per thread is enough, because a header is read without interruption. */
const scratch = new Uint8Array(2 * BLOCK_MAX);

/**
 * Reads the header blocks of a connection's requests. It extracts the fields that a service needs, and checks them
 * against HTTP's rules (RFC 9113 section 8.3). One object serves all requests, and its fields describe the most recent
 * block.
 */
export class RequestHeader {
  /** Empty for any other method. */
  method: 'GET' | 'POST' | '' = '';
  /** The request's target, `path[0, pathLength)`, valid until the next header is read on this thread. */
  readonly path: Uint8Array = scratch;
  pathLength = 0;
  /** -1 if not given. */
  contentLength = -1;
  /** True if the body is gRPC encoded with protocol buffers. */
  isGrpc = false;
  readonly #decoder = new HeaderDecoder();

  /** @param trailing true if the stream's request header has already been read */
  read(bytes: Uint8Array, start: number, end: number, trailing: boolean): HeaderVerdict {
    const decoder = this.#decoder;
    this.method = '';
    this.pathLength = 0;
    this.contentLength = -1;
    this.isGrpc = false;
    let wrong = false;
    let regular = false;
    let seen = 0;
    let size = 0;
    decoder.begin(bytes, start, end);
    // Even an invalid request is read to its end, because later blocks depend on it. Only a decompression bomb ends the
    // connection.
    while (decoder.next()) {
      const { name, nameStart, nameEnd, valueStart, valueEnd } = decoder;
      size += nameEnd - nameStart + valueEnd - valueStart + FIELD_COST;
      if (size > LIST_BREAK) return 'excessive';
      if (size > LIST_MAX) continue;
      if (name[nameStart] !== COLON) {
        regular = true;
        if (!this.#readRegular(trailing)) wrong = true;
        continue;
      }
      const which = this.#readPseudo(name, nameStart, nameEnd);
      if (which === 0 || (seen & which) !== 0 || regular || trailing) wrong = true;
      seen |= which;
    }
    if (decoder.broken) return 'broken';
    if (size > LIST_MAX) return 'too-large';
    if (wrong) return 'malformed';
    if (trailing) return 'trailers';
    return (seen & REQUIRED) === REQUIRED && this.pathLength > 0 ? 'request' : 'malformed';
  }

  /** @returns the field, or 0 if it is not a known one */
  #readPseudo(name: Uint8Array, start: number, end: number): number {
    const { value, valueStart, valueEnd } = this.#decoder;
    if (isSame(name, start, end, names.method)) {
      if (isSame(value, valueStart, valueEnd, GET)) this.method = 'GET';
      else if (isSame(value, valueStart, valueEnd, POST)) this.method = 'POST';
      return SEEN.METHOD;
    }
    if (isSame(name, start, end, names.path)) {
      const { path } = this;
      let length = 0;
      for (let i = valueStart; i < valueEnd; i++) path[length++] = value[i]!;
      this.pathLength = length;
      return SEEN.PATH;
    }
    if (isSame(name, start, end, names.scheme)) return SEEN.SCHEME;
    return isSame(name, start, end, names.authority) ? SEEN.AUTHORITY : 0;
  }

  /** @returns false if the field is not allowed */
  #readRegular(trailing: boolean): boolean {
    const { name, nameStart, nameEnd, value, valueStart, valueEnd } = this.#decoder;
    if (nameStart === nameEnd) return false;
    for (let i = nameStart; i < nameEnd; i++) {
      const byte = name[i]!;
      if (byte <= 0x20 || byte >= 0x7f || (byte >= 0x41 && byte <= 0x5a) || byte === COLON)
        return false;
    }
    if (isSame(name, nameStart, nameEnd, names.te))
      return isSame(value, valueStart, valueEnd, TRAILERS);
    if (!trailing && isSame(name, nameStart, nameEnd, names.contentLength))
      return this.#readLength();
    if (isSame(name, nameStart, nameEnd, names.contentType)) {
      this.isGrpc = isGrpcType(value, valueStart, valueEnd);
      return true;
    }
    for (const other of ofConnection) if (isSame(name, nameStart, nameEnd, other)) return false;
    return true;
  }

  #readLength(): boolean {
    const { value, valueStart, valueEnd } = this.#decoder;
    if (valueStart === valueEnd || valueEnd - valueStart > 10) return false;
    let length = 0;
    for (let i = valueStart; i < valueEnd; i++) {
      const digit = value[i]! - 0x30;
      if (digit < 0 || digit > 9) return false;
      length = length * 10 + digit;
    }
    if (this.contentLength >= 0 && this.contentLength !== length) return false;
    this.contentLength = length;
    return true;
  }
}

const SEEN = { METHOD: 1, SCHEME: 2, PATH: 4, AUTHORITY: 8 };
const REQUIRED = SEEN.METHOD | SEEN.SCHEME | SEEN.PATH;

/** Matches `application/grpc`, `application/grpc+proto`, or either with parameters. */
function isGrpcType(value: Uint8Array, start: number, end: number): boolean {
  if (!isSame(value, start, Math.min(end, start + GRPC.length), GRPC)) return false;
  const rest = start + GRPC.length;
  if (rest === end || value[rest] === SEMICOLON) return true;
  const behind = rest + PROTO.length;
  return (
    isSame(value, rest, Math.min(end, behind), PROTO) &&
    (behind === end || value[behind] === SEMICOLON)
  );
}
