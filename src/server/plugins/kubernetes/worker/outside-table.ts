/** Services' addresses for clients outside the cluster. */
import { parseAddress } from '../../../base/ip.ts';
import { foldName, parseNameOrNull } from '../../../wire/name.ts';
import { encodeAddress } from '../contract/endpoint-encoding.ts';

export interface Outside {
  /** 4 or 16 bytes, or a domain name in wire form. */
  readonly bytes: Uint8Array;
  readonly named: boolean;
}

const none: readonly Outside[] = [];

/** External addresses by service, and services by external address. Services that have none use no memory. */
export class OutsideTable<Service> {
  readonly #of = new Map<Service, { readonly text: string; readonly all: readonly Outside[] }>();
  readonly #at = new Map<string, Set<Service>>();

  /**
   * @param text addresses and host names, separated by spaces
   * @returns true if they changed
   */
  set(service: Service, text: string): boolean {
    const before = this.#of.get(service);
    if ((before?.text ?? '') === text) return false;
    for (const one of before?.all ?? none) this.#forget(one, service);
    if (text === '') return this.#of.delete(service);
    const all = text.split(' ').flatMap(parse);
    this.#of.set(service, { text, all });
    for (const { bytes, named } of all) {
      if (named) continue;
      const key = encodeAddress(bytes);
      const there = this.#at.get(key);
      if (there === undefined) this.#at.set(key, new Set([service]));
      else there.add(service);
    }
    return true;
  }

  of(service: Service): readonly Outside[] {
    return this.#of.get(service)?.all ?? none;
  }

  at(address: Uint8Array): Iterable<Service> {
    return this.#at.get(encodeAddress(address)) ?? [];
  }

  #forget({ bytes, named }: Outside, service: Service): void {
    if (named) return;
    const key = encodeAddress(bytes);
    const there = this.#at.get(key);
    there?.delete(service);
    if (there?.size === 0) this.#at.delete(key);
  }
}

function parse(text: string): readonly Outside[] {
  const address = parseAddress(text);
  if (address !== null) return [{ bytes: address, named: false }];
  const name = parseNameOrNull(text.endsWith('.') ? text : `${text}.`);
  return name === null || name.length === 1 ? none : [{ bytes: foldName(name), named: true }];
}
