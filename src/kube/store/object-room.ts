/** Room for objects that anybody in the cluster may write: one object, one namespace and all together have a bound each. */

/** About so many bytes, of memory rather than of text. */
export interface RoomLimits {
  readonly object: number;
  readonly namespace: number;
  readonly all: number;
}

/** An empty value takes some characters of JSON, and much more memory. */
const VALUE_BYTES = 24;
/** What is kept beside the object: its name in several places, what was made of it. */
const OBJECT_BYTES = 1500;

const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** About what an object takes, bytes. */
export function weightOf(object: object): number {
  const text = JSON.stringify(object);
  let values = 1;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === COMMA || code === COLON || code === BRACKET || code === BRACE) values++;
  }
  return OBJECT_BYTES + text.length + values * VALUE_BYTES;
}

/** What is taken of the room. Stores may share it. */
export class ObjectRoom {
  readonly #limits: RoomLimits;
  readonly #namespaces = new Map<string, number>();
  #all = 0;

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /** Bytes that are taken. */
  get taken(): number {
    return this.#all;
  }

  /** Takes room for an object. @returns why there is none; null: it is taken */
  take(namespace: string, weight: number): 'object' | 'namespace' | 'all' | null {
    const { object, namespace: one, all } = this.#limits;
    const there = this.#namespaces.get(namespace) ?? 0;
    if (weight > object) return 'object';
    if (there + weight > one) return 'namespace';
    if (this.#all + weight > all) return 'all';
    this.#namespaces.set(namespace, there + weight);
    this.#all += weight;
    return null;
  }

  /** Gives back what was taken. */
  give(namespace: string, weight: number): void {
    const left = (this.#namespaces.get(namespace) ?? 0) - weight;
    if (left > 0) this.#namespaces.set(namespace, left);
    else this.#namespaces.delete(namespace);
    this.#all -= weight;
  }
}
