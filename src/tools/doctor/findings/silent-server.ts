import { dnsSelectorOf, podAt, ofPods } from '../cluster/facts.ts';
import type { Observations } from '../observe/observations.ts';
import { answered } from '../observe/outcomes.ts';
import type { ServerView } from '../observe/server-view.ts';
import { takeSilence } from '../observe/consequences.ts';
import { excluded, unknown, type FindingKind, type OptionalText, notAsked } from './finding.ts';
import { listed } from '../texts.ts';
import { icmpText } from '../observe/icmp-errors.ts';
import { lostZoneText, silentCause } from '../observe/silent-causes.ts';
import { TIME_EXCEEDED } from '../../capture/read/packets/dissect.ts';
import { stubZone } from '../observe/stub-zone.ts';
import { ServerLists } from '../observe/server-lists.ts';
import { askersText, isForwarder, isServer, serveTheSame } from '../observe/roles.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** A server that receives queries but never answers any client. */
export const silentServer: FindingKind = {
  code: 'ND3005',
  title: 'A name server never answers',
  name: 'a name server that is down',
  inCapture(observed, claims) {
    if (observed.total.asked === 0) return unknown('no query was seen');
    const silent = observed.servers.list
      .filter(({ outcomes }) => outcomes.asked >= MIN_CASES && answered(outcomes) === 0)
      .toSorted((one, other) => other.outcomes.asked - one.outcomes.asked);
    for (const view of silent) {
      const { address, outcomes, clients } = view;
      const losses = claims.openTo(address);
      // If replies to its hop were lost on the way back, the cause is another one.
      const reached = losses.some(({ hops }) => hops.some(({ repliedMs }) => repliedMs !== null));
      if (losses.length < MIN_CASES || reached) continue;
      takeSilence(observed, claims, losses);
      const icmp = observed.unreachable.get(address);
      const toldByIcmp = icmp?.code === TIME_EXCEEDED ? null : icmpText(icmp);
      const cause = silentCause(observed, address, losses);
      // (A log does not show the server.)
      const others = observed.servers.list.filter(
        (server) => server.address !== '' && answered(server.outcomes) > 0,
      );
      const elsewhere = clients.size === 1 ? replicasElsewhere(observed, view) : [];
      const isUpstream =
        [...clients].some((client) => isForwarder(observed, client)) ||
        stubZone(observed, address, losses) !== null;
      const isOpen = cause?.isComplete !== true;
      const [isOfUpstream, isOfService] = [isOpen && isUpstream, isOpen && !isUpstream];
      const listing = isUpstream ? null : listingText(observed, view);
      return {
        title: cause?.title ?? this.title,
        severity: 'critical',
        confidence: icmp === undefined ? 0.85 : 0.95,
        seen: [
          `${outcomes.asked} queries from ${askersText(observed, clients)} went to ${address}, and none was answered.`,
          cause?.seen,
          isUpstream && lostZoneText(observed, losses),
          toldByIcmp,
          others.length > 0 &&
            `Other servers answered at the same time: ${others
              .slice(0, 3)
              .map((other) => other.address)
              .join(', ')}.`,
          listing,
          elsewhere.length > 0 &&
            `Only ${listed([...clients])} asks it. ${listed(elsewhere)}, which ${elsewhere.length === 1 ? 'serves the same pods, asks' : 'serve the same pods, ask'} others: their configurations differ.`,
        ],
        why: cause?.why ?? whySilent(isUpstream, icmp !== undefined),
        fix: [
          ...(cause?.fix ?? []),
          isOfUpstream &&
            (elsewhere.length > 0
              ? `Compare the upstreams that the DNS pods forward to (in the Corefiles that they loaded, and in their nodes’ resolv.conf). ${[...clients][0]} may have an old one, so restart it.`
              : `Check whether ${address} is up, and whether the Corefile, or the nodes’ resolv.conf, should still list it.`),
          isOfUpstream &&
            'Configure more than one upstream in forward, so that its health checks can switch to another one.',
          ...(isOfService ? serviceFix(observed, address, others) : []),
        ],
        prove: `ndots query ${isUpstream ? 'example.com' : 'kubernetes.default.svc.cluster.local'} @${address}`,
        disproved: `${address} answers when it is queried from its clients’ network`,
        exchanges: losses,
      };
    }
    return silent.length > 0
      ? unknown('too few queries went to silent servers, or another finding explains them')
      : excluded(`all ${observed.servers.size} name servers that were queried have answered`);
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const { vips } = answers;
    const replicas = ofPods(answers.replicas, facts);
    if (replicas.length === 0) return unknown('no DNS pod is known by its address');
    const silent = replicas.filter(({ asked }) => asked.reply === null);
    if (silent.length < replicas.length || vips.some(({ asked }) => asked.reply !== null))
      return excluded(`${replicas.length - silent.length} of ${replicas.length} DNS pods answer`);
    const reached = facts.measurement.direct;
    return {
      severity: 'critical',
      // If this machine may not be in the pod network, the path from here can be the reason.
      confidence: reached ? 0.93 : 0.75,
      seen: [
        `None of the ${replicas.length} DNS pods answers: ${listed(silent.map(({ server, outcome }) => `${podAt(facts, server)} ${outcome}`))}.`,
        reached && 'Their metrics are reachable at the same addresses.',
      ],
      affected: silent.map(({ server }) => podAt(facts, server)),
      why: reached
        ? 'The pods exist but do not answer on their DNS port. The server hangs or listens elsewhere, or a policy drops packets to port 53.'
        : 'The pods hang, they are gone but still listed, or packets from here do not reach them because of a network policy, the routes or the overlay network.',
      fix: [
        `Check their logs with kubectl -n ${facts.namespace} logs --all-containers -l '${dnsSelectorOf(facts)}'.`,
        'Make sure that network policies in their namespace allow UDP and TCP port 53 from all pods.',
      ],
      prove: `run ndots query kubernetes.default.svc.${answers.plan.domain} @${replicas[0]!.server} here and on the pod’s node`,
      disproved: 'the query is answered on the pod’s node (then the path to that node is at fault)',
    };
  },
};

/** @param others the servers that answer */
function serviceFix(
  { serverNames }: Observations,
  address: string,
  others: readonly ServerView[],
): readonly OptionalText[] {
  const otherFamily = others.some(
    (other) => serverNames.isIpv6(other.address) !== serverNames.isIpv6(address),
  );
  return [
    'Check whether the Service has endpoints (kubectl -n kube-system get endpointslices -l k8s-app=kube-dns), and start the server.',
    otherFamily &&
      `Addresses in the other IP family answer, so check whether the nodes have rules and routes for this one (${serverNames.isIpv6(address) ? 'ip6tables-save' : 'iptables-save'} | grep ${address}; kube-proxy’s clusterCIDR for both families).`,
    'If the address is no longer used, remove it from the clients’ resolv.conf (kubelet’s clusterDNS, the pod’s dnsConfig).',
  ];
}

/** The clients that query it first, and the servers that answer its lost queries. Null if there are none. */
function listingText(observed: Observations, { address, clients }: ServerView): string | null {
  const lists = new ServerLists(observed);
  const listing = [...clients].filter((client) => lists.hasItFirst(client, address));
  const next = new Set(
    listing.flatMap((client) =>
      lists.answeredElsewhere(client, address).map((other) => other.address),
    ),
  );
  return next.size === 0
    ? null
    : `${listing.length} ${listing.length === 1 ? 'client asks' : 'clients ask'} it first, with them at once, or in turn, and ${listed([...next])} for its lost queries: a resolv.conf lists all of them, or a Service leads to them in turn.`;
}

function whySilent(isUpstream: boolean, hasIcmp: boolean): string {
  return isUpstream
    ? 'No server answers at that address. It is not running or has moved, or a firewall drops all packets to it. The DNS pods that query it wait for nothing, and so do their clients. Replies are late or SERVFAIL, or never come.'
    : `No server answers at that address. It is not running, the Service has no ready endpoints, or a firewall ${hasIcmp ? 'refuses' : 'drops'} all packets to it. ${hasIcmp ? 'Clients that read the ICMP error (glibc, Go) try the next server at once. Others' : 'Clients'} wait until they time out (mostly 5 s) before they try the next server, for every name.`;
}

/** DNS pods that serve the same clients as the one that queries this server but query others. */
function replicasElsewhere(
  observed: Observations,
  { address, clients }: ServerView,
): readonly string[] {
  const [asker] = clients;
  if (asker === undefined || !isServer(observed, asker)) return [];
  const asking = new Set(
    observed.servers.list.flatMap((server) =>
      server.address === address ? [] : [...server.clients],
    ),
  );
  return [...observed.backends.list, ...observed.servers.list].flatMap((other) =>
    other.address !== asker &&
    other.address !== address &&
    asking.has(other.address) &&
    serveTheSame(observed, asker, other.address)
      ? other.address
      : [],
  );
}
