import { MalformedStream } from '../store/json-stream.ts';

/** Status and header fields of a reply. Names are in lower case, and repeated fields are joined with commas. */
export interface ReplyHead {
  readonly status: number;
  readonly fields: ReadonlyMap<string, string>;
}

/** Receives the parts of a reply as they are parsed. */
export interface ReplyEvents {
  head(head: ReplyHead): void;
  /** Part of the body, without framing. Its bytes are valid only during the call. */
  body(piece: Buffer): void;
  end(): void;
}

/** Maximum size of a reply's head, in bytes. */
const HEAD_BYTES_MAX = 64 * 1024;
/** Maximum length of a line in the chunked coding, in bytes. */
const SIZE_LINE_BYTES_MAX = 1024;

type Http1State =
  | 'head'
  | 'length'
  | 'until-close'
  | 'size'
  | 'chunk'
  | 'chunk-end'
  | 'trailer'
  | 'done';

/**
 * Parses one HTTP/1.1 reply to a GET (RFC 9112) from whatever pieces the connection delivers. It has no side effects,
 * and copies nothing except heads and chunk sizes. Node's own client creates a new buffer for every piece. During lists
 * of hundreds of megabytes, these buffers would make up most of the process's memory.
 */
export class ReplyReader {
  readonly #events: ReplyEvents;
  #state: Http1State = 'head';
  #line = Buffer.alloc(0);
  #left = 0;
  /** True if the connection can be reused for another request after this reply. */
  reusable = true;

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  get done(): boolean {
    return this.#state === 'done';
  }

  /** True if nothing of the reply has arrived. */
  get untouched(): boolean {
    return this.#state === 'head' && this.#line.length === 0;
  }

  /** Parses the next piece. Throws `MalformedStream` if it is not HTTP. */
  push(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) {
      switch (this.#state) {
        case 'head':
          at = this.#readHead(piece, at);
          break;
        case 'length':
        case 'chunk': {
          const end = Math.min(piece.length, at + this.#left);
          this.#left -= end - at;
          this.#events.body(piece.subarray(at, end));
          at = end;
          if (this.#left > 0) break;
          if (this.#state === 'chunk') this.#state = 'chunk-end';
          else this.#finish();
          break;
        }
        case 'until-close':
          this.#events.body(piece.subarray(at));
          return;
        case 'size':
        case 'chunk-end':
        case 'trailer':
          at = this.#readLine(piece, at);
          break;
        case 'done':
          // Bytes after the reply were not requested, so the connection cannot be reused.
          this.reusable = false;
          return;
      }
    }
  }

  /**
   * Called when the connection has ended.
   * @returns true if this was the proper end of the reply
   */
  close(): boolean {
    if (this.#state === 'until-close') this.#finish();
    return this.#state === 'done';
  }

  #readHead(piece: Buffer, from: number): number {
    const before = this.#line.length;
    this.#line = Buffer.concat([this.#line, piece.subarray(from)]);
    const end = this.#line.indexOf('\r\n\r\n');
    if (end < 0) {
      if (this.#line.length > HEAD_BYTES_MAX) throw new MalformedStream('a head without end');
      return piece.length;
    }
    const head = parseHead(this.#line.toString('latin1', 0, end));
    this.#line = Buffer.alloc(0);
    const at = from + end + 4 - before;
    // 100 and 103 precede the real reply; 101 was never requested.
    if (head.status < 200) return at;
    this.#begin(head);
    return at;
  }

  #begin(head: ReplyHead): void {
    const { fields, status } = head;
    const coding = fields.get('transfer-encoding')?.toLowerCase();
    const length = fields.get('content-length');
    if (fields.get('connection')?.toLowerCase().includes('close') === true) this.reusable = false;
    if (coding !== undefined) {
      if (coding !== 'chunked') throw new MalformedStream(`a body coded as '${coding}'`);
      this.#state = 'size';
    } else if (status === 204 || status === 304) {
      this.#left = 0;
    } else if (length === undefined) {
      this.#state = 'until-close';
      this.reusable = false;
    } else {
      if (!/^\d{1,15}$/.test(length)) throw new MalformedStream(`a length of '${length}'`);
      this.#state = 'length';
      this.#left = Number(length);
    }
    const empty = this.#state === 'head' || (this.#state === 'length' && this.#left === 0);
    this.#events.head(head);
    if (empty) this.#finish();
  }

  /** Parses one line of the chunked coding, which is a size, the end of a chunk or a trailer. */
  #readLine(piece: Buffer, from: number): number {
    const end = piece.indexOf(0x0a, from);
    const to = end < 0 ? piece.length : end + 1;
    if (this.#line.length + to - from > SIZE_LINE_BYTES_MAX) {
      throw new MalformedStream('a line in the chunked coding has no end');
    }
    this.#line = Buffer.concat([this.#line, piece.subarray(from, to)]);
    if (end < 0) return to;
    const line = this.#line.toString('latin1').trim();
    this.#line = Buffer.alloc(0);
    if (this.#state === 'chunk-end') {
      if (line !== '') throw new MalformedStream('a chunk longer than its size');
      this.#state = 'size';
    } else if (this.#state === 'trailer') {
      if (line === '') this.#finish();
    } else {
      const size = line.split(';', 1)[0]!.trim();
      if (!/^[0-9a-f]{1,12}$/i.test(size)) throw new MalformedStream(`a chunk of size '${size}'`);
      this.#left = Number.parseInt(size, 16);
      this.#state = this.#left === 0 ? 'trailer' : 'chunk';
    }
    return to;
  }

  #finish(): void {
    this.#state = 'done';
    this.#events.end();
  }
}

function parseHead(text: string): ReplyHead {
  const [first = '', ...lines] = text.split('\r\n');
  const match = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first);
  if (match === null) throw new MalformedStream(`not HTTP but '${first.slice(0, 40)}'`);
  const fields = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) throw new MalformedStream('a header field without a name');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = fields.get(name);
    fields.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  // An HTTP/1.0 connection without keep-alive ends with its reply.
  if (first.startsWith('HTTP/1.0') && !fields.has('connection')) fields.set('connection', 'close');
  return { status: Number(match[1]), fields };
}
