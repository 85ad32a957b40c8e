/** The node and zone that a client sends from. */
import { netHolds, type Net } from '../../../base/ip.ts';
import type { Query } from '../../../transport/query.ts';
import type { AddressFact, NodeFact } from '../contract/cluster-facts.ts';
import { copyEncoded } from '../contract/endpoint-encoding.ts';
import { placeHash } from '../contract/place-hash.ts';
import { AddressTable } from '../contract/multimap.ts';

/** `placeHash`es; empty if unknown. */
export interface ClientPlace {
  readonly node: string;
  readonly zone: string;
}

/** A configured zone for clients in these prefixes. */
export interface ZonePrefixes {
  readonly zone: string;
  readonly prefixes: readonly Net[];
}

interface NodeRecord extends ClientPlace {
  readonly id: number;
  zone: string;
  /** Keys of `#byPrefix`. */
  prefixes: readonly string[];
  there: boolean;
  /** Number of watched pods that send from it. */
  pods: number;
}

/** The cluster's nodes by pod address, node address and prefix. It is empty unless the `topology` option is set. */
export class ClientPlaces {
  readonly #byName = new Map<string, NodeRecord>();
  readonly #byId: (NodeRecord | null)[] = [];
  readonly #freeIds: number[] = [];
  readonly #pods = new AddressTable();
  /** Nodes by prefix length and masked address. There is more than one only while one node takes over from another. */
  readonly #byPrefix = new Map<string, NodeRecord[]>();
  /** Number of keys per prefix length. */
  readonly #lengths = new Map<number, number>();
  readonly #bytes = Buffer.allocUnsafeSlow(4096);

  /** Returns the node that a client sends from, or null. */
  nodeOf({ peer, peerAt, family }: Query): ClientPlace | null {
    const length = family === 4 ? 4 : 16;
    const pod = this.#pods.first(peer, peerAt, length);
    if (pod >= 0) return this.#byId[pod]!;
    let found: NodeRecord | null = null;
    let bits = -1;
    for (const each of this.#lengths.keys()) {
      if (each <= bits || each > 8 * length) continue;
      const nodes = this.#byPrefix.get(prefixKey(peer, peerAt, length, each));
      if (nodes === undefined) continue;
      bits = each;
      found = nodes.length === 1 ? nodes[0]! : null;
    }
    return found;
  }

  applyPod({ address, node = '' }: AddressFact): void {
    const length = copyEncoded(address, this.#bytes);
    const before = this.#pods.first(this.#bytes, 0, length);
    if ((this.#byId[before]?.node ?? '') === node) return;
    if (before >= 0) {
      this.#pods.remove(this.#bytes, 0, length, before);
      this.#byId[before]!.pods--;
      this.#forgetIfEmpty(this.#byId[before]!);
    }
    if (node === '') return;
    const record = this.#make(node);
    record.pods++;
    this.#pods.add(this.#bytes, 0, length, record.id);
  }

  /** @param fact the node's state, or null if it was removed */
  applyNode(name: string, fact: NodeFact | null): void {
    const record = this.#make(placeHash(name));
    for (const key of record.prefixes) this.#takePrefix(key, record);
    record.there = fact !== null;
    record.zone = fact?.zone ?? '';
    record.prefixes = fact === null ? [] : this.#keysOf(fact.prefixes);
    for (const key of record.prefixes) this.#addPrefix(key, record);
    this.#forgetIfEmpty(record);
  }

  #make(node: string): NodeRecord {
    const known = this.#byName.get(node);
    if (known !== undefined) return known;
    const id = this.#freeIds.pop() ?? this.#byId.length;
    const record = { node, id, zone: '', prefixes: [], there: false, pods: 0 };
    this.#byName.set(node, record);
    this.#byId[id] = record;
    return record;
  }

  #forgetIfEmpty(record: NodeRecord): void {
    if (record.there || record.pods > 0) return;
    this.#byName.delete(record.node);
    this.#byId[record.id] = null;
    this.#freeIds.push(record.id);
  }

  #keysOf(prefixes: string): string[] {
    const end = copyEncoded(prefixes, this.#bytes);
    const keys = new Set<string>();
    for (let at = 0; at < end; at += 2 + this.#bytes[at + 1]!)
      keys.add(prefixKey(this.#bytes, at + 2, this.#bytes[at + 1]!, this.#bytes[at]!));
    return [...keys];
  }

  #addPrefix(key: string, record: NodeRecord): void {
    const bits = key.charCodeAt(0);
    this.#byPrefix.set(key, [...(this.#byPrefix.get(key) ?? []), record]);
    this.#lengths.set(bits, (this.#lengths.get(bits) ?? 0) + 1);
  }

  #takePrefix(key: string, record: NodeRecord): void {
    const bits = key.charCodeAt(0);
    const left = this.#byPrefix.get(key)!.filter((one) => one !== record);
    if (left.length > 0) this.#byPrefix.set(key, left);
    else this.#byPrefix.delete(key);
    const count = this.#lengths.get(bits)! - 1;
    if (count > 0) this.#lengths.set(bits, count);
    else this.#lengths.delete(bits);
  }
}

/** Returns the prefix length and the address with all bits after it cleared. */
function prefixKey(bytes: Uint8Array, at: number, length: number, bits: number): string {
  let key = String.fromCharCode(bits, length);
  for (let i = 0; 8 * i < bits; i++)
    key += String.fromCharCode(bytes[at + i]! & (0xff00 >> Math.min(8, bits - 8 * i)));
  return key;
}

/**
 * Returns a function that finds a client's place. The node is looked up in the cluster. The zone is the node's zone or,
 * failing that, the one for the longest configured prefix that contains the client's address.
 */
export function placesOf(
  nodes: { readonly places: ClientPlaces },
  zones: readonly ZonePrefixes[],
): (query: Query) => ClientPlace {
  const nets = zones
    .flatMap(({ zone, prefixes }) => prefixes.map((net) => ({ zone: placeHash(zone), net })))
    .toSorted((a, b) => b.net.bits - a.net.bits);
  return (query) => {
    const node = nodes.places.nodeOf(query);
    if (node !== null && node.zone !== '') return node;
    const { peer, peerAt, family } = query;
    const length = family === 4 ? 4 : 16;
    const found = nets.find(({ net }) => netHolds(net, peer, peerAt, length));
    return { node: node?.node ?? '', zone: found?.zone ?? '' };
  };
}
