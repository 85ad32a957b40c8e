/** DNS over HTTPS (RFC 8484): requests and replies for every HTTP version. */
import { leastTtl } from './least-ttl.ts';
import { MESSAGE_MAX } from '../../wire/iana.ts';

/** The media type of request and response bodies (RFC 8484 section 6). */
export const MEDIA_TYPE = 'application/dns-message';

/**
 * `message` means that the query is in the request's target, and `body` that it is in the request's body. A number is
 * the HTTP status used to refuse the request.
 */
export type DohVerdict = 'message' | 'body' | number;

const PATH = Buffer.from('/dns-query');
const PARAMETER = Buffer.from('dns=');
const QUESTION_MARK = 0x3f;

/** Handles DNS over HTTPS (RFC 8484) requests and replies for all HTTP versions. There is one object per listener. */
export class DnsOverHttps {
  /** The query from a GET, `message[0, length)`, valid until the next request is checked. */
  readonly message: Uint8Array = new Uint8Array(MESSAGE_MAX + 3);
  length = 0;

  /**
   * Checks a request by its method and its target, `path[0, pathLength)`. There is only one resource. GET requires
   * exactly one `dns` parameter, and POST requires a body.
   */
  judgeTarget(method: string, path: Uint8Array, pathLength: number): DohVerdict {
    const { length } = PATH;
    if (pathLength < length || (pathLength > length && path[length] !== QUESTION_MARK)) return 404;
    for (let i = 0; i < length; i++) if (path[i] !== PATH[i]) return 404;
    if (method === 'POST') return 'body';
    if (method !== 'GET') return 400;
    let at = length + 1;
    for (let i = 0; i < PARAMETER.length; i++, at++) {
      if (path[at] !== PARAMETER[i]) return this.#judgeSearch(path, length + 1, pathLength);
    }
    return this.#decode(path, at, pathLength)
      ? 'message'
      : this.#judgeSearch(path, length + 1, pathLength);
  }

  /** Returns the `cache-control` value for the reply `bytes[start, end)`. */
  cacheControl(bytes: Uint8Array, start: number, end: number): string {
    return `max-age=${leastTtl(bytes, start, end)}`;
  }

  /** Parses parameters in any order, whether percent-encoded or not. */
  #judgeSearch(path: Uint8Array, start: number, end: number): DohVerdict {
    if (start > end) return 400;
    const search = Buffer.from(path.subarray(start, end)).toString('latin1');
    const values = new URLSearchParams(search).getAll('dns');
    if (values.length !== 1) return 400;
    const bytes = Buffer.from(values[0]!, 'latin1');
    return this.#decode(bytes, 0, bytes.length) ? 'message' : 400;
  }

  /**
   * Decodes base64url without padding (RFC 4648 section 5) into `message`.
   * @returns false for any other text
   */
  #decode(bytes: Uint8Array, start: number, end: number): boolean {
    const count = end - start;
    if (count <= 0 || count % 4 === 1 || (count * 3) >> 2 > MESSAGE_MAX) return false;
    const { message } = this;
    let length = 0;
    let bits = 0;
    let value = 0;
    for (let i = start; i < end; i++) {
      const six = sixBits[bytes[i]!]!;
      if (six < 0) return false;
      value = ((value << 6) | six) & 0xffff;
      bits += 6;
      if (bits >= 8) {
        bits -= 8;
        message[length++] = value >> bits;
      }
    }
    this.length = length;
    return true;
  }
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** Maps characters to their six bits, or to -1 if they are not base64url. */
const sixBits = new Int8Array(256).fill(-1);
for (const [value, letter] of Buffer.from(alphabet).entries()) sixBits[letter] = value;
