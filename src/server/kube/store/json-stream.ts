/**
 * Reads JSON from a byte stream without holding it all in memory: a list's items one at a time, and a watch's events
 * line by line. It has no side effects, and uses a chunk's bytes only until `push` returns.
 */
export interface JsonStream {
  push(chunk: Buffer): void;
}

/** The stream is malformed. `message` describes the error in words suitable for the log. */
export class MalformedStream extends Error {}

export interface ListHead {
  /** `metadata.resourceVersion` of the list. */
  readonly version: string;
  /** `metadata.continue`; `''` on the last page. */
  readonly next: string;
}

/**
 * Maximum size of an object. etcd stores none above 1.5 MiB, and its encoding takes a third of the space that JSON
 * does.
 */
const ITEM_BYTES_MAX = 8 * 1024 * 1024;
/** Maximum number of bytes around a list's items. There are usually a few hundred. */
const FRAME_BYTES_MAX = 1024 * 1024;

const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const itemsKey = Buffer.from('items');

/**
 * Passes on each element of the top-level array `items` as soon as it is complete. The text around the items is parsed
 * at the end, because `metadata` may come before or after them. `end` throws `MalformedStream` if the list is
 * incomplete.
 */
export class ListReader implements JsonStream {
  readonly #item: (value: unknown) => void;
  /** The list without its items. */
  readonly #frame = new Gather(FRAME_BYTES_MAX);
  /** The first part of an item that continues in a later chunk. */
  readonly #partial = new Gather(ITEM_BYTES_MAX);
  #depth = 0;
  #inString = false;
  #escaped = false;
  #inItems = false;
  #itemOpen = false;
  /** The most recent string at depth 1, used to recognize the key `items`. */
  #key = new Gather(64, true);
  #items = 0;

  constructor(item: (value: unknown) => void) {
    this.#item = item;
  }

  get items(): number {
    return this.#items;
  }

  push(chunk: Buffer): void {
    let depth = this.#depth;
    let inString = this.#inString;
    let escaped = this.#escaped;
    // The first unconsumed byte of an item or of the frame.
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === BACKSLASH) escaped = true;
        else if (byte === QUOTE) inString = false;
        else if (depth === 1) this.#key.byte(byte);
        continue;
      }
      switch (byte) {
        case QUOTE:
          if (depth === 2 && this.#inItems)
            throw new MalformedStream('an item that is not an object');
          inString = true;
          if (depth === 1) this.#key.clear();
          break;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          if (depth === 2 && this.#inItems) {
            from = at;
            this.#itemOpen = true;
          }
          depth++;
          if (depth === 2 && byte === OPEN_BRACKET && this.#key.equals(itemsKey)) {
            this.#frame.add(chunk, from, at + 1);
            this.#inItems = true;
          }
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          depth--;
          if (depth === 2 && this.#itemOpen) {
            this.#finish(chunk, from, at + 1);
          } else if (depth === 1 && this.#inItems) {
            this.#inItems = false;
            from = at;
          } else if (depth < 0) {
            throw new MalformedStream('a bracket too many');
          }
          break;
        case COMMA:
          // The value has ended; a key follows.
          if (depth === 1) this.#key.clear();
          break;
        default:
          // If this were read as a list without items, it would remove everything that is known.
          if (depth === 2 && this.#inItems && byte > SPACE)
            throw new MalformedStream('an item that is not an object');
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    this.#escaped = escaped;
    if (this.#itemOpen) this.#partial.add(chunk, from, chunk.length);
    else if (!this.#inItems) this.#frame.add(chunk, from, chunk.length);
  }

  end(): ListHead {
    if (this.#depth !== 0 || this.#frame.length === 0) {
      throw new MalformedStream(`the list ended early, after ${this.#items} items`);
    }
    const list = parse(this.#frame.text());
    if ((list as { kind?: unknown })?.kind === 'Status')
      throw new MalformedStream('a Status instead of a list');
    const metadata = (list as { metadata?: { resourceVersion?: unknown; continue?: unknown } })
      ?.metadata;
    const version = metadata?.resourceVersion;
    const next = metadata?.continue;
    return {
      version: typeof version === 'string' ? version : '',
      next: typeof next === 'string' ? next : '',
    };
  }

  #finish(chunk: Buffer, from: number, to: number): void {
    let text: string;
    if (this.#partial.length === 0) {
      text = chunk.toString('utf8', from, to);
    } else {
      this.#partial.add(chunk, from, to);
      text = this.#partial.text();
      this.#partial.clear();
    }
    this.#itemOpen = false;
    this.#items++;
    this.#item(parse(text));
  }
}

/** Parses each line of a stream and passes it on. If the last line has no line ending, it is dropped. */
export class JsonLineReader implements JsonStream {
  readonly #line: (value: unknown) => void;
  readonly #partial = new Gather(ITEM_BYTES_MAX);

  constructor(line: (value: unknown) => void) {
    this.#line = line;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(0x0a, from);
      if (end < 0) break;
      let text: string;
      if (this.#partial.length === 0) {
        text = chunk.toString('utf8', from, end);
      } else {
        this.#partial.add(chunk, from, end);
        text = this.#partial.text();
        this.#partial.clear();
      }
      from = end + 1;
      if (text.trim() !== '') this.#line(parse(text));
    }
    this.#partial.add(chunk, from, chunk.length);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MalformedStream(`not JSON: ${(error as Error).message}`);
  }
}

/** Bytes collected over several chunks, at most `limit`. */
class Gather {
  #bytes = Buffer.alloc(0);
  #length = 0;
  readonly #limit: number;
  readonly #cut: boolean;

  /** @param cut true to drop bytes beyond the limit instead of throwing */
  constructor(limit: number, cut = false) {
    this.#limit = limit;
    this.#cut = cut;
  }

  get length(): number {
    return this.#length;
  }

  add(chunk: Buffer, from: number, to: number): void {
    if (to <= from) return;
    this.#reserve(to - from);
    chunk.copy(this.#bytes, this.#length, from, to);
    this.#length += to - from;
  }

  byte(value: number): void {
    if (this.#cut && this.#length >= this.#limit) return;
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  equals(other: Buffer): boolean {
    return this.#length === other.length && other.compare(this.#bytes, 0, this.#length) === 0;
  }

  text(): string {
    return this.#bytes.toString('utf8', 0, this.#length);
  }

  clear(): void {
    this.#length = 0;
    // A single large object must not occupy its memory forever.
    if (this.#bytes.length > 1024 * 1024) this.#bytes = Buffer.alloc(0);
  }

  #reserve(more: number): void {
    const need = this.#length + more;
    if (need > this.#limit)
      throw new MalformedStream(`one part is larger than ${this.#limit} bytes`);
    if (need <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.min(this.#limit, Math.max(2 * need, 256)));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
