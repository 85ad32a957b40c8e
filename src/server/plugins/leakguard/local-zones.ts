/** Names that do not exist on public name servers, along with the RFCs that define them. */
import { foldName, NAME_MAX, parseName } from '../../wire/name.ts';
import type { OfZone } from '../../zone/zone-directory.ts';

export type Reason =
  | 'cluster'
  | 'single_label'
  | 'private_reverse'
  | 'special_name'
  | 'impossible_name';

export interface LocalZone extends OfZone {
  readonly reason: Reason;
  /**
   * True if the public parent zone proves that nothing is signed here. In that case, validating resolvers must be able
   * to query it (RFC 6303 section 4).
   */
  readonly registered: boolean;
}

/** Networks used inside clusters and companies: RFC 1918, RFC 6598 and RFC 3927. */
const usedNetworks: readonly string[] = [
  '10.in-addr.arpa.',
  ...numbered(16, 31).map((number) => `${number}.172.in-addr.arpa.`),
  '168.192.in-addr.arpa.',
  ...numbered(64, 127).map((number) => `${number}.100.in-addr.arpa.`),
  '254.169.in-addr.arpa.',
];

/**
 * IPv6 prefixes that embed an IPv4 address: translated (RFC 6052, as used by `dns64`, and RFC 2765), 6to4, a Teredo
 * server's (RFC 4380), and compatible.
 */
const ipv4Written: readonly string[] = [
  `${'0.'.repeat(16)}b.9.f.f.4.6.0.0.ip6.arpa.`,
  `0.0.0.0.f.f.f.f.${'0.'.repeat(16)}ip6.arpa.`,
  '2.0.0.2.ip6.arpa.',
  '0.0.0.0.1.0.0.2.ip6.arpa.',
  `${'0.'.repeat(24)}ip6.arpa.`,
];

/**
 * Reverse zones for addresses that mean nothing outside: RFC 6303 section 4, RFC 7793 (shared address space) and RFC
 * 9637 (documentation). Clusters also use addresses that the registries (RFC 6890) list as not globally reachable.
 * These are 198.18/15, 240/4, all of fc00::/7 and fec0::/10, the local translation prefix (RFC 8215), and IPv4-mapped
 * addresses.
 */
const privateReverse: readonly string[] = [
  ...usedNetworks,
  ...ipv4Written.flatMap((behind) => usedNetworks.map((zone) => nibbles(zone) + behind)),
  '0.in-addr.arpa.',
  '127.in-addr.arpa.',
  '2.0.192.in-addr.arpa.',
  '100.51.198.in-addr.arpa.',
  '113.0.203.in-addr.arpa.',
  '18.198.in-addr.arpa.',
  '19.198.in-addr.arpa.',
  ...numbered(240, 255).map((number) => `${number}.in-addr.arpa.`),
  `${'0.'.repeat(32)}ip6.arpa.`,
  `1.${'0.'.repeat(31)}ip6.arpa.`,
  `f.f.f.f.${'0.'.repeat(20)}ip6.arpa.`,
  '1.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa.',
  'c.f.ip6.arpa.',
  'd.f.ip6.arpa.',
  ...numbered(8, 15).map((number) => `${number.toString(16)}.e.f.ip6.arpa.`),
  '8.b.d.0.1.0.0.2.ip6.arpa.',
  '0.f.f.f.3.ip6.arpa.',
];

/** The labels that precede the cluster's zone in all names within it. */
const kinds: readonly string[] = ['svc.', 'pod.'];

/**
 * Top-level domains that do not exist but end truncated cluster names (`backend.shop.svc`, `backend.shop.svc.cluster`)
 * when no search path completes them.
 */
const cutShort: readonly string[] = [...kinds, ...kinds.map((kind) => `${kind}cluster.`)];

/**
 * RFC 6761 (test, localhost, invalid), 6762 (local), 7686 (onion), 8375 (home.arpa), 9462 (resolver.arpa) and 9476
 * (alt).
 */
const specialNames: readonly string[] = [
  'test.',
  'localhost.',
  'invalid.',
  'local.',
  'onion.',
  'home.arpa.',
  'resolver.arpa.',
  'alt.',
];

/** Returns the octets of an IPv4 reverse zone in IPv6 notation: `a.0.` for `10.in-addr.arpa.`. */
function nibbles(zone: string): string {
  const octets = zone.slice(0, -'.in-addr.arpa.'.length).split('.');
  return octets.map((octet) => `${hex(Number(octet) & 15)}.${hex(Number(octet) >> 4)}.`).join('');
}

function hex(digit: number): string {
  return digit.toString(16);
}

function numbered(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

/**
 * Returns all zones whose names are blocked.
 * @param clusters absolute names
 * @param searched the nodes' search domains, absolute
 */
export function localZones(
  clusters: readonly string[],
  searched: readonly string[],
  allowed: ReadonlySet<Reason>,
): LocalZone[] {
  const zones = (texts: readonly string[], reason: Reason, registered: boolean): LocalZone[] =>
    allowed.has(reason)
      ? []
      : texts.map((text) => ({ origin: foldName(parseName(text)), reason, registered }));
  return [
    ...zones(clusters, 'cluster', false),
    ...zones(cutShort, 'cluster', true),
    ...zones(
      searched
        .flatMap((domain) => [...cutShort, ...clusters].map((name) => name + domain))
        .filter((name) => !name.endsWith('..') && name.length < NAME_MAX),
      'cluster',
      false,
    ),
    ...zones(privateReverse, 'private_reverse', true),
    ...zones(specialNames, 'special_name', true),
  ];
}

export interface InsideName {
  /** Wire form, lower case, without the root. */
  readonly bytes: Uint8Array;
  readonly zoneAt: number;
}

/** Top-level domains that do not exist. */
const NOBODYS = /\.(?:local|localhost|internal|test|invalid|alt|home\.arpa)\.$/;

/**
 * Returns the patterns that identify a cluster name inside a longer name. These are `svc` or `pod` followed by the
 * zone, and the zone alone if no public name can start with it. This is true for `cluster.local` but not for
 * `k8s.example.com`, because `.br` might follow.
 * @param clusters absolute names
 */
export function namesInside(clusters: readonly string[]): readonly InsideName[] {
  const inside = (text: string, zoneAt: number): InsideName => ({
    bytes: foldName(parseName(text)).subarray(0, -1),
    zoneAt,
  });
  return clusters.flatMap((zone) =>
    NOBODYS.test(zone) ? [inside(zone, 0)] : kinds.map((kind) => inside(kind + zone, kind.length)),
  );
}
