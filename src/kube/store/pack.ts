import { parseAddress, printAddress } from '../../base/ip.ts';
import type {
  Endpoint,
  EndpointSlice,
  Kind,
  KubeObject,
  Pod,
  Service,
  ServiceImport,
  ServicePort,
  ServiceType,
} from './objects.ts';

/**
 * Trimmed objects as a few dozen bytes, from which they can be rebuilt and against which a newer version is
 * compared byte by byte. The same object always packs to the same bytes as long as the dictionary lives. What tells
 * nothing about the object's state (`triggeredAt`) is left out.
 */
const serviceTypes: readonly ServiceType[] = [
  'ClusterIP',
  'NodePort',
  'LoadBalancer',
  'ExternalName',
];

/** Strings that many objects share (nodes, zones, port names, namespaces), each kept once. */
export class Dictionary {
  /** Beyond this many different words, further ones are spelled out in place. */
  static readonly limit = 65_536;
  readonly #ids = new Map<string, number>();
  readonly #words: string[] = [];

  /** The word's number; -1 if the dictionary is full and does not hold it. */
  id(word: string): number {
    const known = this.#ids.get(word);
    if (known !== undefined) return known;
    if (this.#words.length >= Dictionary.limit) return -1;
    const id = this.#words.length;
    this.#ids.set(word, id);
    this.#words.push(word);
    return id;
  }

  word(id: number): string {
    return this.#words[id]!;
  }
}

/** Appends packed values to one buffer that is used over and over. */
export class Packer {
  bytes = Buffer.allocUnsafeSlow(4096);
  length = 0;
  readonly #dictionary: Dictionary;

  constructor(dictionary: Dictionary) {
    this.#dictionary = dictionary;
  }

  begin(): void {
    this.length = 0;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.bytes[this.length++] = value;
  }

  /** A whole number from 0 to 2^31 - 1, seven bits a byte. */
  number(value: number): void {
    this.#reserve(5);
    let rest = value;
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  /** A text of its own: even header, then UTF-8. */
  text(value: string): void {
    const size = Buffer.byteLength(value);
    this.number(size << 1);
    this.#reserve(size);
    this.bytes.write(value, this.length, size, 'utf8');
    this.length += size;
  }

  /** A text that many objects share: odd header, which is its number in the dictionary. */
  shared(value: string): void {
    const id = value === '' ? -1 : this.#dictionary.id(value);
    if (id < 0) this.text(value);
    else this.number((id << 1) | 1);
  }

  /** A text that likely begins like `before`: length of the common start, then the rest. */
  similar(value: string, before: string): void {
    let common = 0;
    while (
      common < value.length &&
      common < before.length &&
      value.charCodeAt(common) === before.charCodeAt(common)
    ) {
      common++;
    }
    // A surrogate pair must not be torn, since its halves cannot be written as UTF-8.
    if (common > 0 && (value.charCodeAt(common - 1) & 0xfc00) === 0xd800) common--;
    this.number(common);
    this.text(common === 0 ? value : value.slice(common));
  }

  address(value: string): void {
    const bytes = parseAddress(value);
    if (bytes === null || printAddress(bytes) !== value) {
      this.byte(0);
      this.text(value);
      return;
    }
    this.byte(bytes.length);
    this.#reserve(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  #reserve(size: number): void {
    if (this.length + size <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.bytes.length, this.length + size));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}

/** Reads what a `Packer` wrote, from `at` on. */
export class Unpacker {
  readonly #bytes: Buffer;
  readonly #dictionary: Dictionary;
  at: number;

  constructor(bytes: Buffer, at: number, dictionary: Dictionary) {
    this.#bytes = bytes;
    this.at = at;
    this.#dictionary = dictionary;
  }

  byte(): number {
    return this.#bytes[this.at++]!;
  }

  number(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes[this.at++]!;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  }

  /** Reads what `text` or `shared` wrote. */
  text(): string {
    const header = this.number();
    if ((header & 1) === 1) return this.#dictionary.word(header >>> 1);
    const size = header >>> 1;
    if (size === 0) return '';
    this.at += size;
    return this.#bytes.toString('utf8', this.at - size, this.at);
  }

  similar(before: string): string {
    const common = this.number();
    const rest = this.text();
    return common === 0 ? rest : before.slice(0, common) + rest;
  }

  address(): string {
    const size = this.byte();
    if (size === 0) return this.text();
    this.at += size;
    return printAddress(this.#bytes, this.at - size, size);
  }
}

/** Packs all but kind and namespace; `key` is the name the object is kept under, mostly its own. */
export function packObject(packer: Packer, object: KubeObject, key: string): void {
  packer.similar(object.name, key);
  switch (object.kind) {
    case 'Service':
      packer.byte(serviceTypes.indexOf(object.type));
      packMany(packer, object.clusterIPs, packAddress);
      packer.text(object.externalName);
      packMany(packer, object.externalIPs, packAddress);
      packMany(packer, object.loadBalancer, packAddress);
      packMany(packer, object.ports, packPort);
      break;
    case 'EndpointSlice':
      packSlice(packer, object);
      break;
    case 'Pod':
      packPod(packer, object);
      break;
    case 'Namespace':
      break;
    case 'ServiceImport':
      packer.byte(object.type === 'Headless' ? 1 : 0);
      packMany(packer, object.ips, packAddress);
      packMany(packer, object.ports, packPort);
      break;
  }
}

export function unpackObject(
  unpacker: Unpacker,
  kind: Kind,
  namespace: string,
  key: string,
): KubeObject {
  const name = unpacker.similar(key);
  switch (kind) {
    case 'Service':
      return {
        kind,
        namespace,
        name,
        type: serviceTypes[unpacker.byte()]!,
        clusterIPs: unpackMany(unpacker, unpackAddress),
        externalName: unpacker.text(),
        externalIPs: unpackMany(unpacker, unpackAddress),
        loadBalancer: unpackMany(unpacker, unpackAddress),
        ports: unpackMany(unpacker, unpackPort),
      } satisfies Service;
    case 'EndpointSlice':
      return unpackSlice(unpacker, namespace, name);
    case 'Pod':
      return unpackPod(unpacker, namespace, name);
    case 'Namespace':
      return { kind, name };
    case 'ServiceImport':
      return {
        kind,
        namespace,
        name,
        type: unpacker.byte() === 1 ? 'Headless' : 'ClusterSetIP',
        ips: unpackMany(unpacker, unpackAddress),
        ports: unpackMany(unpacker, unpackPort),
      } satisfies ServiceImport;
  }
}

function packSlice(packer: Packer, slice: EndpointSlice): void {
  packer.similar(slice.service, slice.name);
  packer.text(slice.importedService ?? '');
  packer.shared(slice.cluster ?? '');
  packMany(packer, slice.ports, packPort);
  packer.number(slice.endpoints.length);
  let before: Endpoint | null = null;
  for (const endpoint of slice.endpoints) {
    packer.byte(endpoint.ready ? 1 : 0);
    packMany(packer, endpoint.addresses, packAddress);
    // Neighbours' names differ in their last few characters only.
    packer.similar(endpoint.hostname, before?.hostname ?? '');
    packer.shared(endpoint.nodeName);
    packer.similar(endpoint.pod, before?.pod ?? slice.name);
    packer.shared(endpoint.zone);
    before = endpoint;
  }
}

function unpackSlice(unpacker: Unpacker, namespace: string, name: string): EndpointSlice {
  const service = unpacker.similar(name);
  const importedService = unpacker.text();
  const cluster = unpacker.text();
  const ports = unpackMany(unpacker, unpackPort);
  const endpoints: Endpoint[] = [];
  let hostname = '';
  let pod = name;
  for (let rest = unpacker.number(); rest > 0; rest--) {
    const ready = unpacker.byte() === 1;
    const addresses = unpackMany(unpacker, unpackAddress);
    hostname = unpacker.similar(hostname);
    const nodeName = unpacker.text();
    pod = unpacker.similar(pod);
    const zone = unpacker.text();
    endpoints.push({ addresses, ready, hostname, nodeName, pod, zone });
  }
  return {
    kind: 'EndpointSlice',
    namespace,
    name,
    service,
    ports,
    endpoints,
    triggeredAt: 0,
    ...(importedService === '' ? {} : { importedService }),
    ...(cluster === '' ? {} : { cluster }),
  };
}

function packPod(packer: Packer, pod: Pod): void {
  const labels = pod.labels === undefined ? null : Object.entries(pod.labels);
  packer.byte((pod.hostNetwork ? 1 : 0) | (pod.terminating ? 2 : 0) | (labels === null ? 0 : 4));
  packMany(packer, pod.ips, packAddress);
  packer.shared(pod.phase);
  if (labels === null) return;
  packer.number(labels.length);
  for (const [key, value] of labels) {
    packer.shared(key);
    packer.shared(value);
  }
}

function unpackPod(unpacker: Unpacker, namespace: string, name: string): Pod {
  const flags = unpacker.byte();
  const pod = {
    kind: 'Pod',
    namespace,
    name,
    ips: unpackMany(unpacker, unpackAddress),
    phase: unpacker.text(),
    hostNetwork: (flags & 1) !== 0,
    terminating: (flags & 2) !== 0,
  } as const;
  if ((flags & 4) === 0) return pod;
  const labels: Record<string, string> = {};
  for (let rest = unpacker.number(); rest > 0; rest--) {
    const key = unpacker.text();
    labels[key] = unpacker.text();
  }
  return { ...pod, labels };
}

function packMany<T>(
  packer: Packer,
  values: readonly T[],
  pack: (packer: Packer, value: T) => void,
): void {
  packer.number(values.length);
  for (const value of values) pack(packer, value);
}

function unpackMany<T>(unpacker: Unpacker, unpack: (unpacker: Unpacker) => T): T[] {
  const values: T[] = [];
  for (let rest = unpacker.number(); rest > 0; rest--) values.push(unpack(unpacker));
  return values;
}

function packAddress(packer: Packer, address: string): void {
  packer.address(address);
}

function unpackAddress(unpacker: Unpacker): string {
  return unpacker.address();
}

function packPort(packer: Packer, port: ServicePort): void {
  packer.shared(port.name);
  packer.shared(port.protocol);
  packer.number(port.port + 1);
}

function unpackPort(unpacker: Unpacker): ServicePort {
  return { name: unpacker.text(), protocol: unpacker.text(), port: unpacker.number() - 1 };
}
