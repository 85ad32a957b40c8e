/** Pods by address, on the control thread. */
import { larger } from '../../../base/copy-bytes.ts';
import { hashBytes } from '../../../base/hash.ts';
import type { ObjectRecord } from '../../../kube/store/object-record.ts';
import type { AddressFact } from '../contract/cluster-facts.ts';
import { encodeAddress } from '../contract/endpoint-encoding.ts';
import { AddressTable, Multimap } from '../contract/multimap.ts';
import { NamespaceTable } from '../contract/namespace-table.ts';
import { placeHash } from '../contract/place-hash.ts';

/** A pod, reduced to the data that determines who sends from its addresses. */
export interface PodRecord extends ObjectRecord {
  readonly kind: 'Pod';
  /** `status.podIPs` (`encodeAddresses`), the first being `status.podIP`. Empty if the pod has finished or is lost. */
  readonly addresses: string;
  /** Flags of `POD`. */
  readonly flags: number;
  /** Empty unless requested. */
  readonly labels: Readonly<Record<string, string>>;
  /** Name of its node, or empty unless requested. */
  readonly node: string;
}

export const POD = { HOST_NETWORK: 2, TERMINATING: 4 } as const;
/** Flag for a pod's first address (`status.podIP`). */
const FIRST = 1;

const utf8 = new TextEncoder();
/** Namespaces have up to 63 characters, and pod names up to 253. */
const podText = new Uint8Array(512);

interface PodName {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>> | null;
}

/**
 * The main thread's table of pods by address. Workers receive only the outcome, which is an address's namespaces and
 * the pod that sends from it. The typed arrays have one entry per pod and address (about 80 bytes). A pod is identified
 * by a 64-bit hash of its namespace and name. The pod that sends from an address is determined as follows:
 * - Finished (Succeeded, Failed) and lost (Unknown) pods never count, because another pod may have been given their
 * address.
 * - Terminating pods count only if no other pod has the address.
 * - If there are still pods in several namespaces (host network, a reassigned address), the pod is unknown.
 */
export class PodTable {
  readonly #named: boolean;
  readonly #byPod = new Multimap(2);
  readonly #byAddress = new AddressTable();
  #bytes = new Uint8Array(16 * 64);
  #namespaces = new Int32Array(64);
  /** Flags; the sign bit marks an IPv4 address. */
  #flags = new Int8Array(64);
  readonly #names: (PodName | null)[] = [];
  /** Node names, if requested. */
  readonly #nodes: string[] = [];
  readonly #free: number[] = [];
  #used = 0;
  /** The names for the numbers in `#namespaces`. */
  readonly #namespaceTable = new NamespaceTable();
  readonly #hash = new Int32Array(2);

  /** @param named true if pod names and labels are needed (by metadata or top) */
  constructor(named: boolean) {
    this.#named = named;
  }

  get namespaces(): number {
    return this.#namespaceTable.size;
  }

  /** Number of entries, one per pod and address. */
  get size(): number {
    return this.#used - this.#free.length;
  }

  /** Stores a pod's current state, and returns what has changed for its old and new addresses. */
  put(pod: PodRecord): AddressFact[] {
    const touched = this.#take(pod.namespace, pod.name);
    const bytes = Buffer.from(pod.addresses, 'latin1');
    for (let at = 0; at < bytes.length; at += 1 + bytes[at]!) {
      const address = bytes.subarray(at + 1, at + 1 + bytes[at]!);
      this.#add(pod, address, pod.flags | (at === 0 ? FIRST : 0));
      touched.set(encodeAddress(address), address);
    }
    return [...touched.values()].map((address) => this.#fact(address));
  }

  remove(namespace: string, name: string): AddressFact[] {
    return [...this.#take(namespace, name).values()].map((address) => this.#fact(address));
  }

  *facts(): Generator<AddressFact> {
    for (let entry = 0; entry < this.#used; entry++) {
      if (this.#namespaces[entry]! < 0) continue;
      const address = this.#address(entry);
      const fact = this.#fact(address);
      // A fact about an address that several pods share is sent only once, with the first of them.
      if (this.#entriesAt(address)[0] === entry) yield fact;
    }
  }

  /** Removes a pod's entries and returns their addresses. */
  #take(namespace: string, name: string): Map<string, Uint8Array> {
    const touched = new Map<string, Uint8Array>();
    const hash = this.#hashOf(namespace, name);
    for (let slot = this.#byPod.find(hash, 0); slot >= 0; slot = this.#byPod.find(hash, 0)) {
      const entry = this.#byPod.value(slot);
      const address = this.#address(entry);
      touched.set(encodeAddress(address), address);
      this.#byPod.remove(hash, 0, entry);
      this.#byAddress.remove(address, 0, address.length, entry);
      this.#namespaceTable.numbers.release(this.#namespaces[entry]!);
      this.#namespaces[entry] = -1;
      if (this.#named) this.#names[entry] = null;
      this.#free.push(entry);
    }
    return touched;
  }

  #add(pod: PodRecord, address: Uint8Array, flags: number): void {
    const entry = this.#free.pop() ?? this.#used++;
    if (entry >= this.#flags.length) this.#grow();
    const hash = this.#hashOf(pod.namespace, pod.name);
    this.#bytes.set(address, 16 * entry);
    const namespace = this.#namespaceTable.numbers.of(pod.namespace);
    this.#namespaceTable.numbers.hold(namespace);
    this.#namespaces[entry] = namespace;
    this.#flags[entry] = address.length === 4 ? flags | -128 : flags;
    const labels = Object.keys(pod.labels).length > 0 ? pod.labels : null;
    if (this.#named) this.#names[entry] = { name: pod.name, labels };
    if (pod.node !== '' || this.#nodes[entry]) this.#nodes[entry] = pod.node;
    this.#byPod.add(hash, 0, entry);
    this.#byAddress.add(address, 0, address.length, entry);
  }

  #fact(address: Uint8Array): AddressFact {
    const entries = this.#entriesAt(address);
    const flags = (entry: number): number => this.#flags[entry]!;
    const first = entries.filter((entry) => (flags(entry) & FIRST) !== 0);
    const staying = entries.filter((entry) => (flags(entry) & POD.TERMINATING) === 0);
    const senders = staying.length > 0 ? staying : entries;
    const from = new Set(senders.map((entry) => this.#namespaces[entry]!));
    const client = from.size === 1 ? this.#namespaceTable.nameOf([...from][0]!) : '';
    const node = placeHash(this.#nodeOf(senders));
    const fact: AddressFact = {
      kind: 'Address',
      address: encodeAddress(address),
      namespaces: first.map((entry) => this.#namespaceTable.nameOf(this.#namespaces[entry]!)),
      client,
      ...(senders.some((entry) => (flags(entry) & POD.HOST_NETWORK) !== 0) ? { host: true } : {}),
      ...(node === '' ? {} : { node }),
    };
    const named = senders.length === 1 ? this.#names[senders[0]!] : null;
    if (!named) return fact;
    return {
      ...fact,
      pod: named.name,
      ...(named.labels === null ? {} : { labels: named.labels }),
    };
  }

  /** Returns the node shared by all of these pods, or an empty string if they differ or it is unknown. */
  #nodeOf(entries: readonly number[]): string {
    const node = this.#nodes[entries[0] ?? -1] ?? '';
    return entries.every((entry) => this.#nodes[entry] === node) ? node : '';
  }

  #entriesAt(address: Uint8Array): number[] {
    const table = this.#byAddress;
    const entries: number[] = [];
    for (let one = table.first(address, 0, address.length); one >= 0; one = table.next())
      entries.push(one);
    return entries.sort((a, b) => a - b);
  }

  #address(entry: number): Uint8Array {
    const length = this.#flags[entry]! < 0 ? 4 : 16;
    return this.#bytes.slice(16 * entry, 16 * entry + length);
  }

  /** Returns 64 bits in the form of two hashes of the same text. */
  #hashOf(namespace: string, name: string): Int32Array {
    const { written } = utf8.encodeInto(`${namespace}/${name}`, podText);
    this.#hash[0] = hashBytes(podText, 0, written, 1);
    this.#hash[1] = hashBytes(podText, 0, written, 2);
    return this.#hash;
  }

  #grow(): void {
    const size = 2 * this.#flags.length;
    this.#bytes = larger(this.#bytes, new Uint8Array(16 * size));
    this.#namespaces = larger(this.#namespaces, new Int32Array(size));
    this.#flags = larger(this.#flags, new Int8Array(size));
  }
}
