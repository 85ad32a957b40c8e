/** Reads from a cluster's Corefiles the domain, upstreams and metrics addresses that queries need. */
import { type Subject } from '../subject.ts';
import { addressOf, fromOf, isResolvConf, targetsOf } from '../upstreams.ts';
import type { ProbeServer } from '../../probe/network.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';

/** Upstreams that are used in turn for the same zone. */
export interface UpstreamGroup {
  /** Absolute. */
  readonly zone: string;
  readonly servers: readonly ProbeServer[];
  /** Place of the address: `coredns Corefile:12`. */
  readonly place: string;
}

/** The first of the cluster's zones that a Corefile serves, without the final dot. Null if none is found. */
export function domainIn({ corefiles }: Subject): string | null {
  for (const { blocks, role } of corefiles)
    for (const block of role === 'server' ? blocks : [])
      for (const { args } of block.directives('kubernetes')) {
        const zones = args.length === 0 ? block.zones : args.map(({ text }) => text);
        const own = zones.find((zone) => !isReverse(zone) && zone !== '.');
        if (own !== undefined) return own.toLowerCase().replace(/\.$/, '');
      }
  return null;
}

/** The `prometheus` port in the servers' Corefiles, or null if there is none. */
export function metricsPortIn({ corefiles }: Subject): number | null {
  for (const { blocks, role } of corefiles)
    for (const block of role === 'server' ? blocks : [])
      for (const { args } of block.directives('prometheus')) {
        const port = Number(/:(\d{1,5})$/.exec(args[0]?.text ?? '')?.[1]);
        if (port > 0) return port;
      }
  return null;
}

/**
 * Upstreams by zone.
 * @param used addresses that the servers report having forwarded to, which come from a resolv.conf that is not
 * available here
 */
export function upstreamGroups(
  { corefiles }: Subject,
  used: readonly ProbeServer[],
): readonly UpstreamGroup[] {
  const named: UpstreamGroup[] = [];
  const files: UpstreamGroup[] = [];
  for (const { blocks, role } of corefiles)
    for (const block of role === 'server' ? blocks : [])
      for (const directive of block.directives('forward')) {
        const zone = fromOf(directive) ?? '.';
        const targets = targetsOf(directive);
        const place = `${directive.at.place.file}:${directive.at.place.line}`;
        const servers = targets.flatMap((target) => {
          const address = addressOf(target);
          return address?.scheme === 'dns' ? [{ host: address.text, port: address.port }] : [];
        });
        const within = block.zones.find((own) => isWithin(own, zone)) ?? zone;
        if (servers.length > 0) named.push({ zone: within, servers, place });
        if (targets.some(isResolvConf)) files.push({ zone: within, servers: [], place });
      }
  const isNamed = ({ host, port }: ProbeServer): boolean =>
    named.some(({ servers }) => servers.some((each) => each.host === host && each.port === port));
  const others = used.filter((server) => !isNamed(server));
  // We know which servers they are only if a single file lists them.
  const [only, ...more] = files;
  return only === undefined || more.length > 0 || others.length === 0
    ? named
    : [...named, { ...only, servers: others }];
}

function isReverse(zone: string): boolean {
  return /(in-addr|ip6)\.arpa\.?$/i.test(zone) || zone.includes('/');
}
