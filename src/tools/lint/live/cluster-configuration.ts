/** Reads from a cluster's Corefiles the domain, upstreams and metrics addresses that queries need. */
import type { LintedBlock, Subject } from '../subject.ts';
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

/** The blocks of all Corefiles that serve the cluster, without those of node caches. */
function serverBlocks({ corefiles }: Subject): readonly LintedBlock[] {
  return corefiles.flatMap(({ blocks, role }) => (role === 'server' ? blocks : []));
}

/** The first of the cluster's zones that a Corefile serves, without the final dot. Null if none is found. */
export function domainIn(subject: Subject): string | null {
  const zones = serverBlocks(subject).flatMap(({ kubernetesZones }) => kubernetesZones);
  return zones.find((zone) => !isReverse(zone) && zone !== '.') ?? null;
}

/** The `prometheus` port in the servers' Corefiles, or null if there is none. */
export function metricsPortIn(subject: Subject): number | null {
  const ports = serverBlocks(subject)
    .flatMap((block) => block.directives('prometheus'))
    .map(({ args }) => Number(/:(\d{1,5})$/.exec(args[0]?.text ?? '')?.[1]));
  return ports.find((port) => port > 0) ?? null;
}

/**
 * Upstreams by zone.
 * @param used addresses that the servers report having forwarded to, which come from a resolv.conf that is not
 * available here
 */
export function upstreamGroups(
  subject: Subject,
  used: readonly ProbeServer[],
): readonly UpstreamGroup[] {
  const named: UpstreamGroup[] = [];
  const files: UpstreamGroup[] = [];
  for (const block of serverBlocks(subject))
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
  return /(in-addr|ip6)\.arpa$/.test(zone) || zone.includes('/');
}
