/** Limits the memory for objects that any user of the cluster may create: per object, per namespace and in total. */

/** Limits in approximate bytes of memory, not of text. */
export interface RoomLimits {
  readonly object: number;
  readonly namespace: number;
  readonly all: number;
}

/** An empty value has few characters in JSON but takes much more memory. */
const VALUE_BYTES = 24;
/** Memory used in addition to the object, for its name in several places and for derived data. */
const OBJECT_BYTES = 1500;

const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** Estimates the memory of an object, in bytes. */
export function weightOf(object: object): number {
  const text = JSON.stringify(object);
  let values = 1;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === COMMA || code === COLON || code === BRACKET || code === BRACE) values++;
  }
  return OBJECT_BYTES + text.length + values * VALUE_BYTES;
}

/** Memory in use. Several stores may share it. */
export class ObjectRoom {
  readonly #limits: RoomLimits;
  readonly #namespaces = new Map<string, number>();
  #all = 0;

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  get taken(): number {
    return this.#all;
  }

  /**
   * Reserves memory for an object.
   * @returns the limit that has been reached, or null if the memory is reserved
   */
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

  give(namespace: string, weight: number): void {
    const left = (this.#namespaces.get(namespace) ?? 0) - weight;
    if (left > 0) this.#namespaces.set(namespace, left);
    else this.#namespaces.delete(namespace);
    this.#all -= weight;
  }
}
