/** Pods by address, on the control thread. */
import { hashBytes } from '../../../base/hash.ts';
import { parseAddress } from '../../../base/ip.ts';
import type { Pod } from '../../../kube/store/objects.ts';
import type { AddressFact } from './cluster-facts.ts';
import { encodeAddress } from './endpoint-encoding.ts';
import { addressKey, Multimap } from './multimap.ts';
import { placeHash } from './place-hash.ts';

const FIRST = 1; // set if it is the pod's first address (`status.podIP`)
const HOST_NETWORK = 2;
const TERMINATING = 4;

const utf8 = new TextEncoder();
/** Namespaces have up to 63 characters, and pod names up to 253. */
const podText = new Uint8Array(512);

interface PodName {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>> | undefined;
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
  readonly #byV4 = new Multimap(1);
  readonly #byV6 = new Multimap(4);
  #words = new Int32Array(4 * 64);
  #namespaces = new Int32Array(64);
  /** Flags; the sign bit marks an IPv4 address. */
  #flags = new Int8Array(64);
  readonly #names: (PodName | null)[] = [];
  /** Node names, if requested. */
  readonly #nodes: string[] = [];
  readonly #free: number[] = [];
  #used = 0;
  readonly #namespaceNames: string[] = [];
  readonly #namespaceIds = new Map<string, number>();
  /** Number of entries per namespace. Once a namespace number has no entries, it can be reused. */
  readonly #namespaceEntries: number[] = [];
  readonly #freeNamespaces: number[] = [];
  readonly #hash = new Int32Array(2);
  readonly #key = new Int32Array(4);

  /** @param named true if pod names and labels are needed (by metadata or top) */
  constructor(named: boolean) {
    this.#named = named;
  }

  get namespaces(): number {
    return this.#namespaceIds.size;
  }

  /** Number of entries, one per pod and address. */
  get size(): number {
    return this.#used - this.#free.length;
  }

  /** Stores a pod's current state, and returns what has changed for its old and new addresses. */
  put(pod: Pod): AddressFact[] {
    const touched = this.#take(pod.namespace, pod.name);
    const live = pod.phase !== 'Succeeded' && pod.phase !== 'Failed' && pod.phase !== 'Unknown';
    if (live) {
      pod.ips.forEach((text, index) => {
        const address = parseAddress(text);
        if (address === null) return;
        const flags =
          (index === 0 ? FIRST : 0) |
          (pod.hostNetwork ? HOST_NETWORK : 0) |
          (pod.terminating ? TERMINATING : 0);
        this.#add(pod, address, flags);
        touched.set(encodeAddress(address), address);
      });
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
      this.#tableOf(address).remove(this.#keyOf(address), 0, entry);
      this.#leave(this.#namespaces[entry]!);
      this.#namespaces[entry] = -1;
      if (this.#named) this.#names[entry] = null;
      this.#free.push(entry);
    }
    return touched;
  }

  #add(pod: Pod, address: Uint8Array, flags: number): void {
    const entry = this.#free.pop() ?? this.#used++;
    if (entry >= this.#flags.length) this.#grow();
    const key = this.#keyOf(address);
    const hash = this.#hashOf(pod.namespace, pod.name);
    for (let i = 0; i < 4; i++) this.#words[4 * entry + i] = i < address.length >> 2 ? key[i]! : 0;
    this.#namespaces[entry] = this.#join(pod.namespace);
    this.#flags[entry] = address.length === 4 ? flags | -128 : flags;
    if (this.#named) this.#names[entry] = { name: pod.name, labels: pod.labels };
    if (pod.nodeName !== undefined) this.#nodes[entry] = pod.nodeName;
    this.#byPod.add(hash, 0, entry);
    this.#tableOf(address).add(this.#keyOf(address), 0, entry);
  }

  #fact(address: Uint8Array): AddressFact {
    const entries = this.#entriesAt(address);
    const flags = (entry: number): number => this.#flags[entry]!;
    const first = entries.filter((entry) => (flags(entry) & FIRST) !== 0);
    const staying = entries.filter((entry) => (flags(entry) & TERMINATING) === 0);
    const senders = staying.length > 0 ? staying : entries;
    const from = new Set(senders.map((entry) => this.#namespaces[entry]!));
    const client = from.size === 1 ? this.#namespaceNames[[...from][0]!]! : '';
    const node = placeHash(this.#nodeOf(senders));
    const fact: AddressFact = {
      about: 'address',
      address: encodeAddress(address),
      namespaces: first.map((entry) => this.#namespaceNames[this.#namespaces[entry]!]!),
      client,
      ...(senders.some((entry) => (flags(entry) & HOST_NETWORK) !== 0) ? { host: true } : {}),
      ...(node === '' ? {} : { node }),
    };
    const named = senders.length === 1 ? this.#names[senders[0]!] : null;
    if (!named) return fact;
    return {
      ...fact,
      pod: named.name,
      ...(named.labels === undefined ? {} : { labels: named.labels }),
    };
  }

  /** Returns the node shared by all of these pods, or an empty string if they differ or it is unknown. */
  #nodeOf(entries: readonly number[]): string {
    const node = this.#nodes[entries[0] ?? -1] ?? '';
    return entries.every((entry) => this.#nodes[entry] === node) ? node : '';
  }

  #entriesAt(address: Uint8Array): number[] {
    const table = this.#tableOf(address);
    const key = this.#keyOf(address);
    const entries: number[] = [];
    for (let slot = table.find(key, 0); slot >= 0; slot = table.findNext(key, 0, slot)) {
      entries.push(table.value(slot));
    }
    return entries.sort((a, b) => a - b);
  }

  #address(entry: number): Uint8Array {
    const length = this.#flags[entry]! < 0 ? 4 : 16;
    const address = new Uint8Array(length);
    for (let i = 0; i < length; i++) {
      address[i] = (this.#words[4 * entry + (i >> 2)]! >>> (24 - 8 * (i & 3))) & 0xff;
    }
    return address;
  }

  #tableOf(address: Uint8Array): Multimap {
    return address.length === 4 ? this.#byV4 : this.#byV6;
  }

  #keyOf(address: Uint8Array): Int32Array {
    return addressKey(address, 0, address.length, this.#key);
  }

  #join(name: string): number {
    let id = this.#namespaceIds.get(name);
    if (id === undefined) {
      id = this.#freeNamespaces.pop() ?? this.#namespaceNames.length;
      this.#namespaceNames[id] = name;
      this.#namespaceEntries[id] = 0;
      this.#namespaceIds.set(name, id);
    }
    this.#namespaceEntries[id]!++;
    return id;
  }

  #leave(id: number): void {
    if (--this.#namespaceEntries[id]! > 0) return;
    this.#namespaceIds.delete(this.#namespaceNames[id]!);
    this.#freeNamespaces.push(id);
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
    this.#words = grown(this.#words, new Int32Array(4 * size));
    this.#namespaces = grown(this.#namespaces, new Int32Array(size));
    this.#flags = grown(this.#flags, new Int8Array(size));
  }
}

function grown<T extends Int32Array | Int8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
