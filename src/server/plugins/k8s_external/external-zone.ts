/** A zone with the external names of services: the zone's own names, and how its records are encoded. */
import { distinct } from '../../base/distinct.ts';
import { bytesKey } from '../../base/copy-bytes.ts';
import type { OutsideEntry } from '../../engine/contract/ports.ts';
import { TYPE } from '../../wire/iana.ts';
import { foldName, joinNames, parseName, suffixAt, type WireName } from '../../wire/name.ts';
import { SECTION, type MessageWriter, type Section } from '../../wire/writer.ts';

/** A zone's name, the name of its name server, and its SOA mailbox, in lower case and wire form. */
export interface ExternalZone {
  readonly text: string;
  readonly name: WireName;
  /** `dns.ZONE`, which has no records but is the name server's parent. */
  readonly apex: WireName;
  readonly server: WireName;
  readonly mailbox: WireName;
  /** TTL of all records in seconds. */
  readonly ttl: number;
}

/** @param apex label above the name server's zone */
export function externalZone(text: string, apex: string, ttl: number): ExternalZone {
  const below = (labels: string): WireName =>
    foldName(parseName(text === '.' ? `${labels}.` : `${labels}.${text}`));
  return {
    text,
    name: foldName(parseName(text)),
    apex: below(apex),
    server: below(`ns1.${apex}`),
    mailbox: below(`hostmaster.${apex}`),
    ttl,
  };
}

export type OwnName = 'apex' | 'empty' | 'server' | 'nothing' | 'elsewhere';

/** Classifies the name `folded[0, length)` within the zone. */
export function ownName(zone: ExternalZone, folded: Uint8Array, length: number): OwnName {
  if (length === zone.name.length) return 'apex';
  if (suffixAt(folded, zone.apex, length) < 0) return 'elsewhere';
  if (length === zone.apex.length) return 'empty';
  return length === zone.server.length && suffixAt(folded, zone.server, length) === 0
    ? 'server'
    : 'nothing';
}

export function writeSoa(
  to: MessageWriter,
  section: Section,
  zone: ExternalZone,
  serial: number,
): void {
  const { name, ttl, server, mailbox } = zone;
  to.soa(section, name, ttl, server, mailbox, [serial, 7200, 1800, 86_400, ttl]);
}

export function writeAddress(
  to: MessageWriter,
  section: Section,
  owner: WireName | null,
  address: Uint8Array,
  ttl: number,
): void {
  to.record(section, owner, address.length === 4 ? TYPE.A : TYPE.AAAA, ttl, address);
}

/**
 * Returns the host that all entries share. Returns null if any of them has an address, because a name with addresses
 * cannot be an alias (RFC 2181 section 10.1).
 */
export function aliasOf(entries: readonly OutsideEntry[]): WireName | null {
  return entries.every(({ named }) => named) ? (entries[0]?.address ?? null) : null;
}

/** Yields the entries' addresses in order, without duplicates. */
export function* addressesOf(entries: readonly OutsideEntry[]): Generator<Uint8Array> {
  for (const { address, named } of distinct(
    entries,
    (one) => `${one.named} ${bytesKey(one.address)}`,
  ))
    if (!named) yield address;
}

export interface ServiceTarget {
  readonly target: WireName;
  readonly port: number;
  readonly weight: number;
  readonly address: Uint8Array | null;
}

/**
 * Yields SRV records for the entries, with weights as in CoreDNS: entries without a port count for the weight, but have
 * no record.
 */
export function* targetsOf(
  entries: readonly OutsideEntry[],
  zone: ExternalZone,
): Generator<ServiceTarget> {
  const weight = Math.max(1, Math.floor(100 / entries.length));
  for (const { address, named, port, below } of entries) {
    const target = named ? address : joinNames(below, zone.name);
    if (port < 0 || target === null) continue;
    yield { target, port, weight, address: named ? null : address };
  }
}

/** Writes an SRV record. If `owner` is null, it belongs to the question's name. */
export function writeTarget(
  to: MessageWriter,
  owner: WireName | null,
  { target, port, weight }: ServiceTarget,
  ttl: number,
): void {
  to.open(SECTION.answer, owner, TYPE.SRV, ttl);
  to.srvData(0, weight, port, target);
  to.close();
}
