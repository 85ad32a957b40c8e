/** Maps addresses to the pods that send from them. */
import type { AddressFact } from '../contract/cluster-facts.ts';
import { copyEncoded } from '../contract/endpoint-encoding.ts';
import { AddressTable } from '../contract/multimap.ts';
import type { NamespaceNumbers } from '../contract/namespace-table.ts';

/** An address with more than one namespace; nearly all addresses have only one. */
interface Special {
  /** One per pod. */
  readonly namespaces: readonly number[];
  /** The client's namespace number; 0 if unknown. */
  readonly client: number;
  readonly host: boolean;
  readonly pod: string;
  readonly labels: Readonly<Record<string, string>> | null;
}

/**
 * The namespaces of the pods at an address, as two numbers per address. Only addresses that are shared, or whose pod
 * names are needed, have an object.
 */
export class ClientTable {
  readonly #table = new AddressTable();
  readonly #specials: (Special | null)[] = [];
  readonly #free: number[] = [];
  readonly #bytes = Buffer.allocUnsafeSlow(16);

  get size(): number {
    return this.#table.size;
  }

  /**
   * Applies a fact.
   * @returns true if anything changed
   */
  apply(fact: AddressFact, numbers: NamespaceNumbers): boolean {
    const length = copyEncoded(fact.address, this.#bytes);
    const table = this.#table;
    const before = table.first(this.#bytes, 0, length);
    if (fact.namespaces.length === 0 && fact.client === '') {
      if (before < 0) return false;
      table.remove(this.#bytes, 0, length, before);
      this.#release(before, numbers);
      return true;
    }
    const plain = plainValue(fact, numbers);
    if (plain >= 0 && plain === before) return false;
    const value = plain >= 0 ? plain : this.#special(fact, numbers);
    this.#each(value, numbers.hold);
    if (before >= 0) {
      table.remove(this.#bytes, 0, length, before);
      this.#release(before, numbers);
    }
    table.add(this.#bytes, 0, length, value);
    return true;
  }

  /** Returns the namespace number of the pod that sends from this address, or 0 if unknown. */
  client(address: Uint8Array, at: number, length: number): number {
    const value = this.#table.first(address, at, length);
    if (value < 0) return 0;
    return (value & SPECIAL) === 0 ? value >> NUMBER : this.#specials[value >> NUMBER]!.client;
  }

  /**
   * Returns the same, but only if the address belongs to a single pod. A node's address never does, even if all its
   * pods on the host network are in one namespace. Node caches, masqueraded pods and any process on the node also send
   * from it.
   */
  ownClient(address: Uint8Array, at: number, length: number): number {
    const value = this.#table.first(address, at, length);
    if (value < 0) return 0;
    if ((value & SPECIAL) === 0) return (value & HOST) === 0 ? value >> NUMBER : 0;
    const { host, client } = this.#specials[value >> NUMBER]!;
    return host ? 0 : client;
  }

  pods(address: Uint8Array, at: number, length: number, namespace: number): number {
    const value = this.#table.first(address, at, length);
    if (value < 0) return 0;
    if ((value & SPECIAL) === 0) return (value & ~HOST) === ((namespace << NUMBER) | FIRST) ? 1 : 0;
    let count = 0;
    for (const one of this.#specials[value >> NUMBER]!.namespaces) if (one === namespace) count++;
    return count;
  }

  /** Returns the name and labels of the pod that sends from this address, or null if unknown. */
  pod(
    address: Uint8Array,
    at: number,
    length: number,
  ): { readonly pod: string; readonly labels: Readonly<Record<string, string>> | null } | null {
    const value = this.#table.first(address, at, length);
    if (value < 0 || (value & SPECIAL) === 0) return null;
    const special = this.#specials[value >> NUMBER]!;
    return special.pod === '' ? null : special;
  }

  #special(
    { namespaces, client, host, pod, labels }: AddressFact,
    numbers: NamespaceNumbers,
  ): number {
    const special: Special = {
      namespaces: namespaces.map((name) => numbers.of(name)),
      client: client === '' ? 0 : numbers.of(client),
      host: host === true,
      pod: pod ?? '',
      labels: labels ?? null,
    };
    const index = this.#free.pop() ?? this.#specials.length;
    this.#specials[index] = special;
    return (index << NUMBER) | SPECIAL;
  }

  #release(value: number, numbers: NamespaceNumbers): void {
    this.#each(value, numbers.release);
    if ((value & SPECIAL) === 0) return;
    this.#specials[value >> NUMBER] = null;
    this.#free.push(value >> NUMBER);
  }

  /** Calls `run` for each namespace in a value, once per occurrence. */
  #each(value: number, run: (id: number) => void): void {
    if ((value & SPECIAL) === 0) return run(value >> NUMBER);
    const { namespaces, client } = this.#specials[value >> NUMBER]!;
    for (const id of namespaces) run(id);
    if (client !== 0) run(client);
  }
}

/** The lowest bits of a value. The rest is either a namespace number or an index into the special entries. */
const FIRST = 1;
const SPECIAL = 2;
const HOST = 4;
const NUMBER = 3;

/** Returns the value for an address with a single known namespace, or -1 in any other case. */
function plainValue(
  { namespaces, client, host, pod }: AddressFact,
  numbers: NamespaceNumbers,
): number {
  if (pod !== undefined || client === '' || namespaces.length > 1) return -1;
  if (namespaces.length === 1 && namespaces[0] !== client) return -1;
  const flags = (namespaces.length === 1 ? FIRST : 0) | (host === true ? HOST : 0);
  return (numbers.of(client) << NUMBER) | flags;
}
