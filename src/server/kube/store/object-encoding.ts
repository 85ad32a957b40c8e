/**
 * Encodes objects in a few dozen bytes, from which they can be restored and compared with a newer version. The same
 * object always has the same encoding while the string table exists. `triggeredAt` is omitted, because it is not part
 * of the object's state.
 */
import { parseAddress, printAddress } from '../../base/ip.ts';
import type {
  Endpoint,
  EndpointSlice,
  Node,
  ObjectKind,
  KubeObject,
  Pod,
  Service,
  ServiceImport,
  ServicePort,
  ServiceType,
} from './objects.ts';

const serviceTypes: readonly ServiceType[] = [
  'ClusterIP',
  'NodePort',
  'LoadBalancer',
  'ExternalName',
];

/** Flags of an endpoint, in addition to `ready`, which is 1. */
const FOR_ZONES = 2;
const FOR_NODES = 4;

/** Longer strings are not Kubernetes names, so they are not shared. */
const NAME_MAX = 256;

/** Strings shared by many objects (nodes, zones, port names and namespaces), each stored only once. */
export class StringTable {
  /** Maximum number of different words. Any others are written inline. */
  static readonly limit = 65_536;
  readonly #ids = new Map<string, number>();
  readonly #words: string[] = [];

  /**
   * Returns the word's number. Returns -1 if the table is full and does not contain it, or if it is longer than a name
   * can be.
   */
  id(word: string): number {
    const known = this.#ids.get(word);
    if (known !== undefined) return known;
    if (this.#words.length >= StringTable.limit || word.length > NAME_MAX) return -1;
    const id = this.#words.length;
    this.#ids.set(word, id);
    this.#words.push(word);
    return id;
  }

  word(id: number): string {
    return this.#words[id]!;
  }
}

/** Appends values to one reusable buffer. */
export class Encoder {
  bytes: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(4096);
  length = 0;
  readonly #strings: StringTable;

  constructor(strings: StringTable) {
    this.#strings = strings;
  }

  begin(): void {
    this.length = 0;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.bytes[this.length++] = value;
  }

  /** Writes an integer from 0 to 2^31 - 1, using seven bits per byte. */
  number(value: number): void {
    this.#reserve(5);
    let rest = value;
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  /** Writes a string inline: an even header followed by UTF-8. */
  text(value: string): void {
    const size = Buffer.byteLength(value);
    this.number(size << 1);
    this.#reserve(size);
    this.bytes.write(value, this.length, size, 'utf8');
    this.length += size;
  }

  /** Writes a string shared by many objects, as an odd header that contains its number in the table. */
  shared(value: string): void {
    const id = value === '' ? -1 : this.#strings.id(value);
    if (id < 0) this.text(value);
    else this.number((id << 1) | 1);
  }

  /** Writes a string that probably begins like `before`, as the length of the common prefix followed by the rest. */
  similar(value: string, before: string): void {
    let common = 0;
    while (
      common < value.length &&
      common < before.length &&
      value.charCodeAt(common) === before.charCodeAt(common)
    ) {
      common++;
    }
    // A surrogate pair must not be split, because its halves cannot be written as UTF-8.
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

/** Reads what an `Encoder` has written, starting at `at`. */
export class Decoder {
  readonly #bytes: Buffer;
  readonly #strings: StringTable;
  at: number;

  constructor(bytes: Buffer, at: number, strings: StringTable) {
    this.#bytes = bytes;
    this.at = at;
    this.#strings = strings;
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

  /** Reads the output of `text` or `shared`. */
  text(): string {
    const header = this.number();
    if ((header & 1) === 1) return this.#strings.word(header >>> 1);
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

/**
 * Encodes everything except kind and namespace. `key` is the name under which the object is stored, usually its own
 * name.
 */
export function encodeObject(encoder: Encoder, object: KubeObject, key: string): void {
  encoder.similar(object.name, key);
  switch (object.kind) {
    case 'Service':
      encoder.byte(serviceTypes.indexOf(object.type));
      encodeMany(encoder, object.clusterIPs, encodeAddress);
      encoder.text(object.externalName);
      encodeMany(encoder, object.externalIPs, encodeAddress);
      encodeMany(encoder, object.loadBalancer, encodeAddress);
      encodeMany(encoder, object.ports, encodePort);
      break;
    case 'EndpointSlice':
      encodeSlice(encoder, object);
      break;
    case 'Pod':
      encodePod(encoder, object);
      break;
    case 'Namespace':
      break;
    case 'Node':
      encoder.byte((object.schedulable ? 1 : 0) | (object.place === undefined ? 0 : 2));
      encoder.number(object.milliCores);
      if (object.place === undefined) break;
      encoder.shared(object.place.zone);
      encodeMany(encoder, object.place.prefixes, encodeText);
      break;
    case 'ServiceImport':
      encoder.byte(object.type === 'Headless' ? 1 : 0);
      encodeMany(encoder, object.ips, encodeAddress);
      encodeMany(encoder, object.ports, encodePort);
      break;
  }
}

/** Decodes an object of this kind and namespace that was written by `encodeObject`. */
export function decodeObject(
  decoder: Decoder,
  kind: ObjectKind,
  namespace: string,
  key: string,
): KubeObject {
  const name = decoder.similar(key);
  switch (kind) {
    case 'Service':
      return {
        kind,
        namespace,
        name,
        type: serviceTypes[decoder.byte()]!,
        clusterIPs: decodeMany(decoder, decodeAddress),
        externalName: decoder.text(),
        externalIPs: decodeMany(decoder, decodeAddress),
        loadBalancer: decodeMany(decoder, decodeAddress),
        ports: decodeMany(decoder, decodePort),
      } satisfies Service;
    case 'EndpointSlice':
      return decodeSlice(decoder, namespace, name);
    case 'Pod':
      return decodePod(decoder, namespace, name);
    case 'Namespace':
      return { kind, name };
    case 'Node':
      return decodeNode(decoder, name);
    case 'ServiceImport':
      return {
        kind,
        namespace,
        name,
        type: decoder.byte() === 1 ? 'Headless' : 'ClusterSetIP',
        ips: decodeMany(decoder, decodeAddress),
        ports: decodeMany(decoder, decodePort),
      } satisfies ServiceImport;
  }
}

function decodeNode(decoder: Decoder, name: string): Node {
  const flags = decoder.byte();
  const node: Node = {
    kind: 'Node',
    name,
    schedulable: (flags & 1) !== 0,
    milliCores: decoder.number(),
  };
  if ((flags & 2) === 0) return node;
  const zone = decoder.text();
  return { ...node, place: { zone, prefixes: decodeMany(decoder, decodeText) } };
}

function encodeSlice(encoder: Encoder, slice: EndpointSlice): void {
  encoder.similar(slice.service, slice.name);
  encoder.text(slice.importedService ?? '');
  encoder.shared(slice.cluster ?? '');
  encodeMany(encoder, slice.ports, encodePort);
  encoder.number(slice.endpoints.length);
  let before: Endpoint | null = null;
  for (const endpoint of slice.endpoints) {
    const { forZones, forNodes } = endpoint;
    encoder.byte(
      (endpoint.ready ? 1 : 0) |
        (forZones === undefined ? 0 : FOR_ZONES) |
        (forNodes === undefined ? 0 : FOR_NODES),
    );
    encodeMany(encoder, endpoint.addresses, encodeAddress);
    // Names next to each other differ only in their last few characters.
    encoder.similar(endpoint.hostname, before?.hostname ?? '');
    encoder.shared(endpoint.nodeName);
    encoder.similar(endpoint.pod, before?.pod ?? slice.name);
    encoder.shared(endpoint.zone);
    if (forZones !== undefined) encodeMany(encoder, forZones, encodeShared);
    if (forNodes !== undefined) encodeMany(encoder, forNodes, encodeShared);
    before = endpoint;
  }
}

function decodeSlice(decoder: Decoder, namespace: string, name: string): EndpointSlice {
  const service = decoder.similar(name);
  const importedService = decoder.text();
  const cluster = decoder.text();
  const ports = decodeMany(decoder, decodePort);
  const endpoints: Endpoint[] = [];
  let hostname = '';
  let pod = name;
  for (let rest = decoder.number(); rest > 0; rest--) {
    const flags = decoder.byte();
    const ready = (flags & 1) !== 0;
    const addresses = decodeMany(decoder, decodeAddress);
    hostname = decoder.similar(hostname);
    const nodeName = decoder.text();
    pod = decoder.similar(pod);
    const zone = decoder.text();
    endpoints.push({
      addresses,
      ready,
      hostname,
      nodeName,
      pod,
      zone,
      ...((flags & FOR_ZONES) === 0 ? {} : { forZones: decodeMany(decoder, decodeText) }),
      ...((flags & FOR_NODES) === 0 ? {} : { forNodes: decodeMany(decoder, decodeText) }),
    });
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

function encodePod(encoder: Encoder, pod: Pod): void {
  const labels = pod.labels === undefined ? null : Object.entries(pod.labels);
  encoder.byte(
    (pod.hostNetwork ? 1 : 0) |
      (pod.terminating ? 2 : 0) |
      (labels === null ? 0 : 4) |
      (pod.nodeName === undefined ? 0 : 8),
  );
  encodeMany(encoder, pod.ips, encodeAddress);
  encoder.shared(pod.phase);
  if (pod.nodeName !== undefined) encoder.shared(pod.nodeName);
  if (labels === null) return;
  encoder.number(labels.length);
  for (const [key, value] of labels) {
    encoder.shared(key);
    encoder.shared(value);
  }
}

function decodePod(decoder: Decoder, namespace: string, name: string): Pod {
  const flags = decoder.byte();
  const pod = {
    kind: 'Pod',
    namespace,
    name,
    ips: decodeMany(decoder, decodeAddress),
    phase: decoder.text(),
    hostNetwork: (flags & 1) !== 0,
    terminating: (flags & 2) !== 0,
    ...((flags & 8) === 0 ? {} : { nodeName: decoder.text() }),
  } as const;
  if ((flags & 4) === 0) return pod;
  const labels: Record<string, string> = {};
  for (let rest = decoder.number(); rest > 0; rest--) {
    const key = decoder.text();
    labels[key] = decoder.text();
  }
  return { ...pod, labels };
}

function encodeMany<T>(
  encoder: Encoder,
  values: readonly T[],
  encode: (encoder: Encoder, value: T) => void,
): void {
  encoder.number(values.length);
  for (const value of values) encode(encoder, value);
}

function decodeMany<T>(decoder: Decoder, decode: (decoder: Decoder) => T): T[] {
  const values: T[] = [];
  for (let rest = decoder.number(); rest > 0; rest--) values.push(decode(decoder));
  return values;
}

function encodeText(encoder: Encoder, text: string): void {
  encoder.text(text);
}

function encodeShared(encoder: Encoder, text: string): void {
  encoder.shared(text);
}

function decodeText(decoder: Decoder): string {
  return decoder.text();
}

function encodeAddress(encoder: Encoder, address: string): void {
  encoder.address(address);
}

function decodeAddress(decoder: Decoder): string {
  return decoder.address();
}

function encodePort(encoder: Encoder, port: ServicePort): void {
  encoder.shared(port.name);
  encoder.shared(port.protocol);
  encoder.number(port.port + 1);
}

function decodePort(decoder: Decoder): ServicePort {
  return { name: decoder.text(), protocol: decoder.text(), port: decoder.number() - 1 };
}
