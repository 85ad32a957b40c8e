/** DNS pods behind one address, some of which do not answer. */
import { podAt, ofPods } from '../cluster/facts.ts';
import { lossRate } from '../observe/outcomes.ts';
import { explainLate, explainWaiting, silencesOf } from '../observe/consequences.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind, type FoundCause, notAsked } from './finding.ts';
import { clock, fromTo, listed, share } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import type { Observations } from '../observe/observations.ts';
import { icmpText } from '../observe/icmp-errors.ts';
import { hungText } from '../observe/silent-causes.ts';
import type { ServerView } from '../observe/server-view.ts';
import { answeredBetween } from '../observe/losses.ts';
import { askedForCluster } from '../observe/roles.ts';
import { ServerLists } from '../observe/server-lists.ts';
import { DEAF_SHARE, MIN_CASES, MIN_LASTING_MS, SPARED_SHARE } from '../thresholds/evidence.ts';
import { SOCKETS_PER_POD } from '../thresholds/silence.ts';
import { REUSED_PORTS } from '../thresholds/transport.ts';

export const deadBackend: FindingKind = {
  code: 'ND3008',
  title: 'A DNS pod behind the Service does not answer',
  name: 'a dead DNS pod behind the Service',
  inCapture(observed, claims) {
    const list = backendsOf(observed);
    const astray = astrayOf(observed, claims);
    const dead = list.filter(
      (view) =>
        ((view.outcomes.asked >= MIN_CASES && lossRate(view.outcomes) >= DEAF_SHARE) ||
          diedMeanwhile(view, observed, list.length)) &&
        !isOfItsClients(view, list),
    );
    const fromMs = Math.min(...dead.map(({ lastReplyMs }) => lastReplyMs));
    const fine = list.filter(
      (view) =>
        view.outcomes.asked >= MIN_CASES &&
        lossRate(view.outcomes) <= SPARED_SHARE &&
        view.lastReplyMs > fromMs &&
        !dead.includes(view),
    );
    const isNone = dead.length === 0 || fine.length === 0;
    if (isNone && astray.length > 0) return oneIsGone(astray, claims);
    if (list.length < 2)
      return unknown(
        'the capture does not show the DNS pods behind the Service’s address (capture on the node)',
      );
    if (isNone)
      return list.some(({ outcomes }) => outcomes.lost === outcomes.asked)
        ? unknown('too few queries went to the DNS pod that did not answer')
        : excluded('all DNS pods that were queried answer');
    const losses = dead.flatMap(({ address }) => claims.openTo(address));
    if (losses.length < MIN_CASES)
      return unknown('another finding explains the queries that were lost on the way to a pod');
    claims.take(losses);
    // A cache that alternates between them is also late during that time.
    explainWaiting(observed, claims, silencesOf(losses));
    explainLate(observed, claims, losses);
    const names = dead.map(({ address }) => address);
    const lost = sentSpan(losses);
    const asked = askedSince(dead);
    const isGone = dead.every(
      ({ address }) => (observed.unreachable.get(address)?.noNeighbour ?? 0) >= MIN_CASES,
    );
    const hung = names.flatMap((name) => hungText(observed, name) ?? []);
    // These may include losses from before the last reply.
    const counted = asked >= losses.length ? share(losses.length, asked) : String(losses.length);
    return {
      severity: 'critical',
      confidence: 0.9,
      seen: [
        `${fromMs > -Infinity ? `${listed(names)} answered until ${clock(fromMs)}. Since then, ` : ''}${counted} queries sent ${fromMs > -Infinity ? 'there' : `to ${listed(names)}`} got no reply, ${fromTo(lost.fromMs, lost.toMs)}.`,
        `${fine.length} other ${fine.length === 1 ? 'pod' : 'pods'} answered ${fine.reduce((sum, { outcomes }) => sum + outcomes.asked - outcomes.lost, 0)} queries from the same clients.`,
        ...hung,
        ...dead.map(({ address }) => icmpText(observed.unreachable.get(address))),
      ],
      why: whyDead(dead.length > 1, isGone, hung.length > 0),
      fix: [
        isGone &&
          `Check whether the node of ${listed(names)} is up (kubectl get nodes; kubectl get pods -A -o wide | grep ${names[0]}). If the node is gone, delete it (kubectl delete node), which removes the endpoint.`,
        `Check whether these pods are running: kubectl -n kube-system get pods -o wide | grep -e ${names.slice(0, 3).join(' -e ')}. Delete those that do not answer.`,
        'If they answer on their own node but not from another, check the network between nodes. For the VXLAN checksum bug, the receiver’s kernel logs "bad checksum"; run ethtool -K flannel.1 tx-checksum-ip-generic off on the sender.',
        'Add a readinessProbe on /ready, which removes a dead pod from the Service.',
      ],
      prove: names
        .slice(0, 2)
        .map((name) => `ndots query kubernetes.default.svc.cluster.local @${name}`)
        .join('; '),
      disproved: 'these pods answer when they are queried directly from the client’s node',
      exchanges: losses,
    };
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const replicas = ofPods(answers.replicas, facts);
    const silent = replicas.filter(({ asked }) => asked.reply === null);
    if (replicas.length < 2) return unknown('fewer than two DNS pod addresses are known');
    if (silent.length === 0) return excluded(`all ${replicas.length} DNS pods answer`);
    if (silent.length === replicas.length) return unknown('no DNS pod answers');
    return {
      severity: 'critical',
      confidence: 0.93,
      seen: [
        `${silent.length} of ${replicas.length} DNS pods do not answer at their own address: ${listed(silent.map(({ server, outcome }) => `${podAt(facts, server)} ${outcome}`))}.`,
      ],
      affected: silent.map(({ server }) => podAt(facts, server)),
      why: `The Service sends ${silent.length} of ${replicas.length} queries to a pod that does not answer. The client waits for its time-out (5 s with glibc and Go), then retries and may reach another pod.`,
      fix: [
        `Delete the pod (kubectl -n ${facts.namespace} delete pod NAME), and check its log and its node for the cause.`,
        'Add a readinessProbe on /ready (the ready plugin) with a period of a few seconds, which removes such a pod from the Service.',
      ],
      prove: `ndots query kubernetes.default.svc.${answers.plan.domain} @${silent[0]!.server}`,
      disproved:
        'a pod on another node gets an answer (then the network path from here to that node is at fault)',
    };
  },
};

function whyDead(isSeveral: boolean, isGone: boolean, isHung: boolean): string {
  return isSeveral
    ? 'Losses depend only on the pod that a query goes to. If these pods are on other nodes, suspect the network between nodes, for example a missing route, or VXLAN checksums that a network card computes wrongly. Otherwise, the pods are dead but still endpoints of the Service.'
    : isGone
      ? 'A router reports that no host has the address, so the pod’s node is down or the pod lost its interface. The pod is still an endpoint of the Service, so its share of the queries is lost. Clients that reach it wait 5 s or retry at once.'
      : `The pod ${isHung ? 'hangs because its process is stopped, deadlocked or gets no CPU time. It' : 'is dead, hung or cut off, but'} is still an endpoint of the Service, so its share of the queries is lost and the clients wait 5 s.`;
}

/**
 * True if the pod's clients are cut off: no pod answers any of them, although they query several
 * and some of these answer others.
 */
function isOfItsClients({ address, clients }: ServerView, list: readonly ServerView[]): boolean {
  const others = list.filter((each) => each.address !== address);
  return (
    ![...clients].some((client) => list.some(({ served }) => served.has(client))) &&
    others.some(
      (each) => each.served.size > 0 && [...clients].some((client) => each.clients.has(client)),
    )
  );
}

/**
 * True if a pod no longer answers but still receives new sockets, so it is still an endpoint of the
 * Service.
 */
function diedMeanwhile(
  { lastReplyMs, lastAskedMs, sinceReply }: ServerView,
  { flows }: Observations,
  pods: number,
): boolean {
  const theirs = new Set(sinceReply.map((each) => flows.get(each)));
  const fresh = [...theirs].filter(
    (flow) => flow !== undefined && flow.firstMs > lastReplyMs,
  ).length;
  const silentMs = lastAskedMs - lastReplyMs;
  if (sinceReply.length < MIN_CASES || fresh < 2 || silentMs < MIN_LASTING_MS) return false;
  // A pod that ended receives queries until its endpoint is removed. After that, no new socket
  // reaches it.
  const services = new Set(sinceReply.map(({ server }) => server.address));
  const sockets = [...services].flatMap((service) => flows.to(service));
  const later = sockets.filter(({ firstMs }) => firstMs > lastAskedMs).length;
  // Only old sockets, and new ones with the port of an earlier one, reach a pod that is no
  // longer an endpoint.
  const untilMs = sentSpan(sinceReply).toMs;
  const opened = sockets.filter(
    ({ firstMs }) => firstMs > lastReplyMs && firstMs <= untilMs,
  ).length;
  return fresh > REUSED_PORTS * opened && later < SOCKETS_PER_POD * pods;
}

/** Queries to these servers since their last replies. */
function askedSince(dead: readonly ServerView[]): number {
  return dead.reduce((sum, { outcomes, history, lastReplyMs }) => {
    const before = history.filter(([second]) => (second + 1) * 1000 <= lastReplyMs);
    const answered = history.reduce((all, [, each]) => all + each.asked - each.lost, 0);
    const lost = before.reduce((all, [, each]) => all + each.lost, 0);
    return sum + outcomes.asked - answered - lost;
  }, 0);
}

/**
 * DNS pods that queries were translated to. If the capture shows no translation, the DNS pods that
 * a cache or a forwarder distributes its queries to.
 */
function backendsOf(observed: Observations): readonly ServerView[] {
  const { backends, servers } = observed;
  const { found, other: others } = askedForCluster(observed);
  const isPod = (server: string): boolean => found.has(server) || others.has(server);
  const lists = new ServerLists(observed);
  const pods = new Set<string>();
  for (const { address, clients } of servers.list) {
    if (!isPod(address)) continue;
    const rest = [...clients].filter((client) => !lists.hasItFirst(client, address));
    const turning = rest.filter((client) => lists.asksInTurn(client, address));
    // If most clients have it first in their resolv.conf, so do the others.
    if (clients.size - rest.length >= turning.length) continue;
    for (const client of turning) {
      pods.add(address);
      for (const other of lists.answeredElsewhere(client, address))
        if (isPod(other.address)) pods.add(other.address);
    }
  }
  return [
    ...backends.list,
    ...servers.list.filter(({ address }) => pods.has(address) && !backends.get(address)),
  ];
}

/**
 * Lost queries to an address that answers other clients at the time. A router reported that no host
 * on its link has the translated address.
 */
function astrayOf(observed: Observations, claims: Claims): readonly SeenExchange[] {
  const lost = claims.open.filter(
    ({ client }) => observed.astray.get(`${client.address} ${client.port}`) === true,
  );
  const { fromMs, toMs } = sentSpan(lost);
  const theirs = lost.filter((each) =>
    answeredBetween(observed, each.server.address, fromMs, toMs),
  );
  return theirs.length >= MIN_CASES ? theirs : [];
}

function oneIsGone(losses: readonly SeenExchange[], claims: Claims): FoundCause {
  const servers = [...new Set(losses.map(({ server }) => server.address))];
  const sockets = new Set(losses.map(({ client }) => `${client.address} ${client.port}`));
  // Earlier losses on such a socket, before the router gave up, have the same cause.
  const all = claims.open.filter(({ client }) => sockets.has(`${client.address} ${client.port}`));
  claims.take(all);
  return {
    severity: 'critical',
    confidence: 0.9,
    seen: [
      `${all.length} queries from ${sockets.size} sockets to ${listed(servers)} came back with an ICMP error (host or address unreachable). No host has the address that they were translated to.`,
      `During the same time, queries from other sockets to ${listed(servers)} were answered.`,
    ],
    why: 'The Service’s address leads to several pods. One of them is gone, together with its host or its interface. It is still an endpoint of the Service, so its share of the queries is lost.',
    fix: [
      'List the endpoints with kubectl -n kube-system get endpointslices -l k8s-app=kube-dns, and query each one with ndots query kubernetes.default.svc.cluster.local @ENDPOINT.',
      'To remove the endpoint, delete the missing node (kubectl delete node) or the pod.',
    ],
    prove:
      'on the client’s node, ip neigh shows FAILED for an endpoint’s address or for that endpoint’s node',
    disproved: 'all endpoints answer when they are queried directly from the client’s node',
    exchanges: all,
  };
}
