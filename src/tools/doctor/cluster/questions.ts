/** The queries to a running cluster’s servers, for replicas, search domains and upstreams. */
import { parseHostPort } from '../../../server/base/ip.ts';
import type { ProbeContext } from '../../probe/check.ts';
import { uniqueServers } from '../../probe/probe-queries.ts';
import { noObjects } from '../../probe/cluster-objects.ts';
import { askUpstream, differingViews } from '../../lint/live/upstreams.ts';
import type { UpstreamGroup } from '../../lint/live/cluster-configuration.ts';
import type { AskedUpstreams, ClusterFacts, Lacking } from './facts.ts';
import { firstOf } from './lacking.ts';
import type { Measurement } from './measure.ts';
import type { ClientGroup, DnsPod } from './pods.ts';
import { isBelow, isWithin } from '../../../server/wire/within-zone.ts';

/** Tools to send queries. */
export type ClusterAskingContext = Pick<
  ProbeContext,
  'network' | 'random' | 'clock' | 'timeoutMs' | 'tries'
>;

/** The most search domains to query. */
const SUFFIXES_MAX = 12;
/** The most upstream groups to query, and the most servers in each. */
const UPSTREAMS_MAX = 16;

/**
 * The servers to query: the Service and each ready DNS pod.
 * @param replicasMost the most pods to query
 */
export function contextOf(
  probe: ClusterAskingContext,
  parts: {
    readonly domain: string;
    readonly vip: ProbeContext['vip'];
    readonly pods: readonly DnsPod[];
    readonly endpoints: ClusterFacts['endpoints'];
    readonly replicasMost: number;
  },
): ProbeContext {
  const { domain, vip, pods, endpoints, replicasMost } = parts;
  const ready = (endpoints ?? []).filter((each) => each.ready);
  const port = ready[0]?.port ?? 53;
  const own = pods
    .filter(({ role, ready: isReady, leaving }) => role === 'server' && isReady && !leaving)
    .flatMap(({ addresses }) => addresses.slice(0, 1).map((host) => ({ host, port })));
  const replicas = uniqueServers([
    ...ready.map(({ host, port: at }) => ({ host, port: at })),
    ...own,
  ]);
  const search = [`default.svc.${domain}`, `svc.${domain}`, domain];
  return {
    ...probe,
    objects: noObjects,
    vip,
    replicas: replicas.slice(0, replicasMost),
    search,
    ndots: 5,
    clusterDomain: domain,
  };
}

/**
 * Suffixes in pods’ search paths other than the cluster’s, from their dnsConfig and, if this runs
 * in a pod, from its own search path.
 */
export function suffixesOf(
  search: readonly string[],
  clients: readonly ClientGroup[],
  domain: string,
  lacking: Lacking[],
): readonly string[] {
  const theirs = clients.flatMap(({ searches }) => searches);
  const all = [...search, ...theirs].map((suffix) => suffix.toLowerCase().replace(/\.$/, ''));
  const foreign = [...new Set(all)].filter((suffix) => suffix !== '' && !isWithin(suffix, domain));
  const asked = firstOf(foreign, SUFFIXES_MAX, 'the pods’ search domains', lacking);
  return [`svc.${domain}.`, ...asked.map((suffix) => `${suffix}.`)];
}

/** The upstream servers that appear in metrics. */
export function forwardedTo({ measured }: Measurement): ReturnType<typeof uniqueServers> {
  const names = measured.flatMap(({ after }) =>
    ['coredns_proxy_request_duration_seconds_count', 'coredns_forward_requests_total'].flatMap(
      (metric) => [...after.by(metric, 'to').keys()],
    ),
  );
  return uniqueServers(
    names.flatMap((name) => {
      const { host = '', port = null } = parseHostPort(name) ?? {};
      return port === null ? [] : [{ host, port }];
    }),
  );
}

/** The replies from each group’s servers, and their differences. */
export function askedUpstreams(
  probe: ClusterAskingContext,
  groups: readonly UpstreamGroup[],
  names: readonly string[],
  lacking: Lacking[],
): Promise<readonly AskedUpstreams[]> {
  return Promise.all(
    firstOf(groups, UPSTREAMS_MAX, 'upstream groups', lacking).map(async (group) => {
      const what = `upstreams for ${group.zone}`;
      const servers = firstOf(group.servers, UPSTREAMS_MAX, what, lacking);
      const replies = await Promise.all(
        servers.map((server) => askUpstream(probe, server, group.zone)),
      );
      const alive = replies.filter(({ udp }) => udp.reply !== null).map(({ server }) => server);
      const within = names.filter((name) => isBelow(name, group.zone));
      const differences = alive.length < 2 ? [] : await differingViews(probe, alive, within);
      return { ...group, replies, differences };
    }),
  );
}
