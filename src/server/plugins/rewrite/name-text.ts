/** The text of the name in a question, without allocating a string. */
import { holdsAt } from '../../base/copy-bytes.ts';
import { printLabel } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';

/** Bytes that have to be escaped in the text of a name. */
const ESCAPED: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  printLabel(Uint8Array.of(byte), 0, 1).length > 1 ? 1 : 0,
);
const DOT = 0x2e;

/**
 * The text of the name in a question as bytes, absolute and in lower case, for prefix, suffix and substring. Each link
 * has one. It is filled when a query first needs it, and does not allocate for ordinary names.
 */
export class NameText {
  readonly #plain = new Uint8Array(256);
  #bytes: Uint8Array = this.#plain;
  #length = 0;
  #known = false;

  /** Must be called before processing another query or name. */
  forget(): void {
    this.#known = false;
  }

  startsWith(query: Query, part: Uint8Array): boolean {
    this.#read(query);
    return part.length <= this.#length && holdsAt(this.#bytes, 0, part);
  }

  endsWith(query: Query, part: Uint8Array): boolean {
    this.#read(query);
    return part.length <= this.#length && holdsAt(this.#bytes, this.#length - part.length, part);
  }

  includes(query: Query, part: Uint8Array): boolean {
    this.#read(query);
    for (let at = 0, last = this.#length - part.length; at <= last; at++) {
      if (holdsAt(this.#bytes, at, part)) return true;
    }
    return false;
  }

  #read(query: Query): void {
    if (this.#known) return;
    this.#known = true;
    const { folded, nameLength } = query;
    const plain = this.#plain;
    this.#bytes = plain;
    this.#length = nameLength - 1;
    if (nameLength <= 1) {
      plain[0] = DOT;
      this.#length = 1;
      return;
    }
    let label = folded[0]! + 1;
    for (let at = 1; at < nameLength; at++) {
      const byte = folded[at]!;
      if (at === label) {
        plain[at - 1] = DOT;
        label = at + byte + 1;
      } else if (ESCAPED[byte] === 1) {
        this.#bytes = utf8.encode(query.name);
        this.#length = this.#bytes.length;
        return;
      } else {
        plain[at - 1] = byte;
      }
    }
  }
}

const utf8 = new TextEncoder();
