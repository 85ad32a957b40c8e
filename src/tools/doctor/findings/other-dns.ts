/** Clients that query a server of their own choice that does not know the cluster. */
import { type ClientGroup, labelOf } from '../cluster/pods.ts';
import type { ClientView } from '../observe/client-view.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { isServer, serveTheSame } from '../observe/roles.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

export const otherDns: FindingKind = {
  code: 'ND2007',
  title: 'Some pods query servers other than the cluster’s DNS',
  name: 'pods that query other servers',
  inCapture(observed) {
    const { knows, misses } = clusterNames(observed);
    if (knows.size === 0) return unknown('no server was seen that knows cluster names');
    const strangers = observed.servers.list.filter(
      ({ address }) =>
        !knows.has(address) &&
        (misses.get(address) ?? 0) >= MIN_CASES &&
        [...knows].every((ours) => !serveTheSame(observed, ours, address)) &&
        askers(observed, address, knows).length > 0,
    );
    if (strangers.length === 0)
      return excluded('clients query the cluster’s DNS for cluster names');
    const addresses = new Set(strangers.map(({ address }) => address));
    const theirs = [
      ...new Set([...addresses].flatMap((address) => askers(observed, address, knows))),
    ];
    const clients = new Set(theirs.map(({ address }) => address));
    const exchanges = observed.affected.flatMap((lookup) =>
      clients.has(lookup.client)
        ? lookup.exchanges.filter(({ name }) => observed.domains.isOfCluster(name))
        : [],
    );
    const missing = [...addresses].reduce((sum, address) => sum + misses.get(address)!, 0);
    const others = observed.clients.list.filter(
      ({ address }) => !clients.has(address) && !isServer(observed, address),
    ).length;
    const asked = theirs.reduce(
      (sum, { servers }) =>
        [...addresses].reduce((of, address) => of + (servers.get(address)?.asked ?? 0), sum),
      0,
    );
    return {
      severity: 'critical',
      confidence: 0.9,
      seen: [
        `${listed(theirs.map(({ address }: ClientView) => address))} ${theirs.length === 1 ? 'queries' : 'query'} ${listed([...addresses])}, while ${others === 1 ? 'one other client does' : `${others} other clients do`} not.`,
        `${share(missing, asked)} of their queries were for cluster names that other clients find, but got NXDOMAIN.`,
      ],
      why: 'These pods have dnsPolicy Default or None, their own resolver, or a server address hard-coded in the program. That server does not know Service names. The cluster’s DNS is not at fault.',
      fix: [
        'Unless this is intended, set dnsPolicy: ClusterFirst (ClusterFirstWithHostNet for pods on the host network).',
        'If it is intended, make that server forward the cluster’s domain to the cluster’s DNS.',
      ],
      prove: `run kubectl get pods -A -o wide | grep -E '${[...clients].slice(0, 3).join('|')}', and check their dnsPolicy and dnsConfig`,
      disproved: 'the pods’ /etc/resolv.conf lists the cluster’s DNS',
      exchanges,
    };
  },
  inCluster({ clients, service, pods, namespace }) {
    if (clients === null) return unknown('the pods of all namespaces could not be listed');
    const ours = new Set([
      ...(service?.vips ?? []).map(({ host }) => host),
      ...(pods ?? []).flatMap(({ addresses }) => addresses),
    ]);
    const isOther = ({
      policy,
      nameservers,
      hostNetwork,
      namespace: own,
    }: ClientGroup): boolean => {
      if (own === namespace || hostNetwork) return false;
      if (policy === 'Default') return true;
      return (
        policy === 'None' &&
        !nameservers.some((each) => ours.has(each) || each.startsWith('169.254.'))
      );
    };
    const found = service === null ? [] : clients.filter(isOther);
    if (found.length === 0) return excluded('pods query the cluster’s DNS');
    const count = found.reduce((sum, { pods: number }) => sum + number, 0);
    return {
      severity: 'info',
      confidence: 0.9,
      seen: [
        `${count} pods have dnsPolicy Default, or None with other servers: ${listed(found.map(labelOf))}.`,
      ],
      affected: found.map(labelOf),
      why: 'These pods cannot resolve Service names. If their lookups fail, the cluster’s DNS is not at fault.',
      fix: ['Unless this is intended, set dnsPolicy: ClusterFirst.'],
      prove:
        'ndots trace kubernetes.default --from pod/NAME shows which servers the pod NAME queries',
      disproved: '',
    };
  },
};

/**
 * Servers that know cluster names, and how often other servers deny these names.

 */
function clusterNames({ names, domains }: Observations): {
  readonly knows: ReadonlySet<string>;
  readonly misses: ReadonlyMap<string, number>;
} {
  const knows = new Set<string>();
  const misses = new Map<string, number>();
  for (const { name, outcomes, servers } of names.list) {
    if (outcomes.found + outcomes.nodata === 0 || !domains.isOfCluster(name)) continue;
    for (const [server, { found, nodata, nxdomain }] of servers)
      if (found + nodata > 0) knows.add(server);
      else if (nxdomain > 0) misses.set(server, (misses.get(server) ?? 0) + nxdomain);
  }
  return { knows, misses };
}

/**
 * The server's clients that are not servers themselves. If the server is an upstream of the
 * cluster's DNS, clients that also use the cluster's DNS do not count.
 */
function askers(
  observed: Observations,
  address: string,
  knows: ReadonlySet<string>,
): readonly ClientView[] {
  const all = observed.clients.list.filter(({ servers }) => servers.has(address));
  const programs = all.filter((client) => !isServer(observed, client.address));
  if (programs.length === all.length) return programs;
  return programs.filter(({ servers }) => [...servers.keys()].every((each) => !knows.has(each)));
}
