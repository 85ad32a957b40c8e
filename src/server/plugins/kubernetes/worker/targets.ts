/** Writes address and SRV records for services, endpoints and pods. */
import { copyOf } from '../../../base/copy-bytes.ts';
import { readUint32 } from '../../../base/big-endian.ts';
import { TYPE } from '../../../wire/iana.ts';
import type { WireName } from '../../../wire/name.ts';
import { SECTION } from '../../../wire/writer.ts';
import type { ServiceRecord, SliceRecord } from './cluster.ts';
import type { ClusterLookup } from './lookup.ts';
import { labelBytes } from './name.ts';
import { EndpointReader, copyEncoded } from '../contract/endpoint-encoding.ts';
import { FAMILY, indexOf } from '../contract/endpoint-index.ts';
import type { ReplyBuilder } from './reply-builder.ts';

const reader = new EndpointReader();
const scratch = Buffer.allocUnsafeSlow(4096);

export function serviceLabels(service: ServiceRecord): readonly string[] {
  return [service.name, service.namespace.name, 'svc'];
}

/** Returns the labels of an endpoint's name below its zone; `host` is the endpoint's own label. */
export function endpointLabels(
  service: ServiceRecord,
  slice: SliceRecord,
  host: string,
): readonly string[] {
  const imported = slice.imported === service && slice.cluster !== '';
  return imported
    ? [host, slice.cluster, ...serviceLabels(service)]
    : [host, ...serviceLabels(service)];
}

/** Calls `take` for each of a service's cluster addresses, with 4 or 16 bytes at `at`. */
export function eachAddress(
  service: Pick<ServiceRecord, 'addresses'>,
  take: (bytes: Uint8Array, at: number, length: number) => void,
): void {
  const end = copyEncoded(service.addresses, scratch);
  for (let at = 0; at < end; at += 1 + scratch[at]!) take(scratch, at + 1, scratch[at]!);
}

/**
 * Writes A or AAAA records for the lookup's result, which are cluster IPs or ready endpoints in order and without
 * duplicates. If `owner` is null, they belong to the question's name.
 */
export function writeAddresses(
  builder: ReplyBuilder,
  lookup: ClusterLookup,
  type: number,
  owner: WireName | null = null,
): void {
  const length = type === TYPE.A ? 4 : 16;
  const service = lookup.service!;
  written.clear();
  const write = (bytes: Uint8Array, at: number, size: number): void => {
    if (size !== length) return;
    const address = keyOf(bytes, at, size);
    if (written.has(address)) return;
    written.add(address);
    builder.address(SECTION.answer, owner, bytes, at, size);
  };
  if (isByCluster(lookup)) return eachAddress(service, write);
  const family = type === TYPE.A ? FAMILY.V4 : FAMILY.V6;
  const take = (): boolean => {
    if (!reader.named) write(reader.bytes, reader.addressAt, reader.addressLength);
    return !builder.full;
  };
  for (const slice of lookup.slices()) {
    if ((indexOf(slice).families & family) === 0) continue;
    if (!lookup.eachEndpoint(slice, reader, take)) return;
  }
}

const written = new Set<number | string>();

/** Returns a small number for an IPv4 address and a byte string for an IPv6 address. */
function keyOf(bytes: Uint8Array, at: number, length: number): number | string {
  if (length === 4) return readUint32(bytes, at) | 0;
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1');
}

/** A target, port and address where the name can be reached. */
interface TargetAddress {
  readonly target: WireName;
  readonly port: number;
  /** 4 or 16 bytes, or null if the target is an external name. */
  readonly address: Uint8Array | null;
}

/** Handles one target; returns false to stop. */
type TakeTarget = (target: WireName, port: number, address: Uint8Array | null) => boolean;

export function writeServices(builder: ReplyBuilder, lookup: ClusterLookup): void {
  const each = isByCluster(lookup) ? eachOfCluster : eachOfEndpoints;
  writeTargets(builder, (take) => each(builder, lookup, take));
}

/** Writes the SRV record for a pod's name. As in CoreDNS, the target is the pod's own name and there is no port. */
export function writePodService(
  builder: ReplyBuilder,
  lookup: ClusterLookup,
  folded: Uint8Array,
): void {
  const { name, address, pods } = lookup;
  const labels = [labelBytes(folded, name.object), labelBytes(folded, name.namespace), 'pod'];
  const target = builder.nameBelow(labels);
  if (target === null) return;
  const entries = Array<TargetAddress>(pods).fill({ target, port: 0, address });
  writeTargets(builder, (take) => entries.every((one) => take(one.target, one.port, one.address)));
}

/**
 * Returns the weight for SRV records. As in CoreDNS, it is determined before duplicates are removed, and entries
 * without a port count.
 */
export function weightOf(entries: number): number {
  return Math.max(1, Math.floor((100 / (100 * entries)) * 100));
}

/** With more entries than this, the weight is 1. */
const WEIGHED_MAX = 100;

/** Reads entries while they are being written, so that they are never all in memory. */
function writeTargets(builder: ReplyBuilder, each: (take: TakeTarget) => unknown): void {
  let entries = 0;
  each(() => ++entries <= WEIGHED_MAX);
  const weight = weightOf(entries);
  const seen = new Set<string>();
  each((target, port) => {
    if (port >= 0 && isNew(seen, target, 0, target.length, port)) builder.srv(weight, port, target);
    return !builder.full;
  });
  if (builder.full) return;
  each((target, port, address) => {
    if (port < 0 || address === null) return true;
    const pair = Buffer.concat([target, address]);
    if (isNew(seen, pair, 0, pair.length))
      builder.address(SECTION.additional, target, address, 0, address.length);
    return !builder.full;
  });
}

function eachOfCluster(builder: ReplyBuilder, lookup: ClusterLookup, take: TakeTarget): void {
  const service = lookup.service!;
  const target = builder.nameBelow(serviceLabels(service));
  if (target === null) return;
  for (const port of service.ports) {
    if (!lookup.takesPort(port)) continue;
    eachAddress(service, (bytes, at, length) => {
      take(target, port.port, copyOf(bytes, at, at + length));
    });
  }
}

function eachOfEndpoints(builder: ReplyBuilder, lookup: ClusterLookup, take: TakeTarget): void {
  for (const slice of lookup.slices()) {
    const ports = slice.ports.filter((port) => lookup.takesPort(port));
    const more = lookup.eachEndpoint(slice, reader, () => {
      const bytes = reader.address;
      const target = reader.named
        ? bytes
        : builder.nameBelow(endpointLabels(lookup.service!, slice, reader.host));
      if (target === null) return true;
      const address = reader.named ? null : bytes;
      return ports.every(({ port }) => take(target, port, address));
    });
    if (!more) return;
  }
}

/** True if the answer for this service is its own addresses rather than those of its endpoints. */
function isByCluster({ service, name }: ClusterLookup): boolean {
  return service!.form === 'cluster' && name.endpoint < 0;
}

function isNew(
  seen: Set<string>,
  bytes: Uint8Array,
  at: number,
  length: number,
  number = -1,
): boolean {
  const key =
    Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1') +
    (number < 0 ? '' : `|${number}`);
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}
