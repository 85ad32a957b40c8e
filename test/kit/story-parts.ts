/**
 * Building blocks for incidents as packets: pods that look up names, exchanges between given ports, and a network with
 * one fault.
 */
import type { Captured } from './packets.ts';
import { addressRecord, back, dnsMessage, udpPacket, type Ends } from './packets.ts';
import {
  healthy,
  ownIpId,
  play,
  podResolvConf,
  STORY_START,
  type Fate,
  type Passing,
  type StoryClient,
} from './story.ts';

/** A cause and the code of its finding, or null if there is no fault. */
export interface Story {
  readonly name: string;
  readonly code: string | null;
  /** Text that the first finding must show. */
  readonly seen?: RegExp;
  readonly also?: readonly string[];
  /** Findings that must not come after it. */
  readonly without?: readonly string[];
  /** Lines from counters and logs that are known. */
  readonly lines?: readonly string[];
  /** Additional seeds that every run plays, because their packets show the fault in an unusual way. */
  readonly seeds?: readonly number[];
  packets(seed: number): Promise<readonly Captured[]>;
}

/** The names that pods look up. */
export const names: readonly string[] = [
  'www.example.com',
  'api.example.org',
  'backend',
  'redis.cache',
  'db',
  'mail.example.com',
  'static.example.org',
];

/** Pods with the same resolver, each of which looks up several names. */
export function pods(
  resolver: string,
  count: number,
  more: {
    readonly lookups?: number;
    readonly everyMs?: number;
    readonly resolvConf?: string;
    readonly names?: readonly string[];
    readonly from?: number;
  } = {},
): StoryClient[] {
  const {
    lookups = 6,
    everyMs = 700,
    resolvConf = podResolvConf,
    names: asked = names,
    from = 1,
  } = more;
  return Array.from({ length: count }, (_, pod) => ({
    address: `10.244.1.${pod + from}`,
    resolver,
    resolvConf,
    lookups: Array.from({ length: lookups }, (__, i) => ({
      atMs: 50 + pod * 37 + i * everyMs,
      name: asked[(pod + i) % asked.length]!,
    })),
  }));
}

export const everybody = (lookups = 6): StoryClient[] => [
  ...pods('glibc', 5, { lookups }),
  ...pods('musl', 3, { lookups, from: 40 }),
  ...pods('go', 3, { lookups, from: 80 }),
];

/** A pod's resolv.conf with a company search domain after the cluster's domains. */
export const corpResolvConf =
  'nameserver 10.96.0.10\nsearch shop.svc.cluster.local svc.cluster.local cluster.local corp.example\noptions ndots:5\n';

/** An example played by resolver models. */
export const played = (
  name: string,
  code: string | null,
  clients: () => readonly StoryClient[],
  fate: (passing: Passing) => Fate,
  lines?: readonly string[],
): Story => ({
  name,
  code,
  ...(lines === undefined ? {} : { lines }),
  packets: (seed) => play(clients(), fate, { seed }),
});

/** Loses a given share of the queries for the example's names. */
export const some = (passing: Passing, share: number): boolean =>
  passing.random.integer(1000) < share * 1000;

/** A network that treats new sockets differently from sockets that have been answered. */
export function byAge(isLost: (passing: Passing) => boolean): (passing: Passing) => Fate {
  const known = new Set<string>();
  return (passing) => {
    const socket = `${passing.client} ${passing.port}`;
    if (!known.has(socket) && isLost(passing)) return { lost: true };
    known.add(socket);
    return healthy(passing);
  };
}

/** No fault, except that UDP answers for the service `db` are truncated, either for one type or for all. */
export const dbTruncated = (passing: Passing, type: string = passing.type): Fate =>
  passing.protocol === 'udp' && passing.name.startsWith('db.shop.') && passing.type === type
    ? { truncated: true, tookMs: 0.5 }
    : healthy(passing);

/** @param ms milliseconds after the start */
export const at = (ms: number, bytes: Uint8Array): Captured => ({
  timeMs: STORY_START + ms,
  bytes,
});

/** An address derived from the name. */
function addressOf(name: string): string {
  let sum = 0;
  for (let at = 0; at < name.length; at++) sum = (sum * 31 + name.charCodeAt(at)) % 250;
  return `192.0.2.${sum + 1}`;
}

export function asked(
  atMs: number,
  ends: Ends,
  name: string,
  id: number,
  more: {
    readonly type?: string;
    readonly tookMs?: number | null;
    readonly rcode?: number;
    readonly address?: string;
    readonly ttl?: number;
  } = {},
): Captured[] {
  const { type = 'A', tookMs = 0.6, rcode = 0, address = addressOf(name), ttl = 30 } = more;
  const query = at(
    atMs,
    udpPacket(ends, dnsMessage(name, type, { id }), ownIpId(ends.fromPort, id)),
  );
  if (tookMs === null) return [query];
  const soa = {
    mname: 'ns.',
    rname: 'host.',
    serial: 1,
    refresh: 1,
    retry: 1,
    expire: 1,
    minimum: ttl,
  };
  const reply = dnsMessage(name, type, {
    id,
    reply: true,
    rcode,
    answer: rcode === 0 && type === 'A' ? [addressRecord(name, address, ttl)] : [],
    authority: rcode === 3 ? [{ name: '.', type: 6, class: 1, ttl, data: soa }] : [],
  });
  return [query, at(atMs + tookMs, udpPacket(back(ends), reply, ((id + 1) % 0xfffe) + 1))];
}

/** From a client to a DNS server. */
export const ends = (client: string, port: number, server = '10.96.0.10'): Ends => ({
  from: client,
  fromPort: port,
  to: server,
  toPort: 53,
});

export const inOrder = (packets: readonly (readonly Captured[])[]): Captured[] =>
  packets.flat().toSorted((one, other) => one.timeMs - other.timeMs);

/** Packets truncated to a number of bytes. */
export const begun = (packets: readonly Captured[], bytes: number): Captured[] =>
  packets.map((packet) => ({ ...packet, bytes: packet.bytes.subarray(0, bytes) }));
