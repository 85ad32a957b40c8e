/** Queries that draw ICMP port unreachable, by the sender of the ICMP errors. */
import { isLoopbackHost } from '../../../server/base/ip.ts';
import { excluded, type FoundCause, type OptionalText, type FindingKind } from './finding.ts';
import { clock, fromTo, listed, share } from '../texts.ts';
import { cacheAtService } from '../observe/cache-at-service.ts';
import type { Claims } from '../observe/claims.ts';
import { takeSilence } from '../observe/consequences.ts';
import type { Observations } from '../observe/observations.ts';
import { rejectingHosts, type RejectedTime, type RejectingHost } from '../observe/rejected.ts';
import { askersText, isForwarder, isLinkLocal, isServer, upstreams } from '../observe/roles.ts';
import { unevenness } from '../observe/evenness.ts';
import { removedFrom } from '../observe/server-silence.ts';
import { answered, lossRate, noOutcomes, type Outcomes } from '../observe/outcomes.ts';
import { REFUSED_IN_TURN } from '../thresholds/errors.ts';
import { MIN_CASES, MOST, SAME_MOMENT_MS, SPARED_SHARE } from '../thresholds/evidence.ts';
import { ENDS_AGAIN } from '../thresholds/silence.ts';

const none = excluded('hardly any lost query drew ICMP port unreachable');

/** A proxy on the pod's loopback interface rejects the pod's queries, usually because it starts later. */
export const closedProxy: FindingKind = {
  code: 'ND3060',
  title: 'The DNS proxy in a pod is not listening, so the pod’s queries are rejected',
  name: 'a DNS proxy in the pod that is not running',
  inCapture(observed, claims) {
    const found = rejectingHosts(observed, claims).find(
      ({ address, host, losses }) =>
        isLoopbackHost(host) &&
        // A server may forward to another one in its own pod.
        losses.some(({ client }) => !isServer(observed, client.address)) &&
        // An address that never answers on port 53 comes from the wrong resolv.conf.
        (address !== host || answered(outcomesOf(address, observed)) > 0),
    );
    if (found === undefined) return none;
    const { address, losses, times, runsAgain } = found;
    takeSilence(observed, claims, losses);
    const [time] = times;
    const view = observed.servers.get(address);
    const isFirst = times.length === 1 && runsAgain && (view?.firstReplyMs ?? 0) > time!.toMs;
    const isNever = answered(outcomesOf(address, observed)) === 0;
    return {
      title: isFirst
        ? 'The DNS proxy in a pod starts after the program, whose first queries are rejected'
        : this.title,
      subject: address,
      severity: 'critical',
      confidence: 0.95,
      seen: [
        returnedText(found, observed),
        `${address} is on the pod’s own loopback interface. A proxy in the pod, such as a service mesh’s sidecar, serves it, and these queries never left the pod.`,
        isFirst
          ? `The first reply came at ${clock(view!.firstReplyMs)}, and the proxy has answered since then.`
          : isNever && 'It never answered in this capture.',
      ],
      why: isFirst
        ? 'Rules in the pod redirect its queries to the proxy (Istio’s DNS proxy listens on port 15053) as soon as the pod has a network, but the proxy starts after the program. Until then nothing listens on its port, and the kernel rejects each query at once. The cluster’s DNS and other pods are not affected.'
        : 'The pod’s queries are redirected to a proxy in the pod, whose process has ended or has not started. The kernel rejects each query at once. The cluster’s DNS and other pods are not affected.',
      fix: [
        'Start the proxy before the program: holdApplicationUntilProxyStarts: true (Istio’s proxy.istio.io/config), or a native sidecar (an initContainer with restartPolicy: Always).',
        'Make the program retry failed lookups at its start instead of exiting or remembering the failure.',
        'If the proxy ended later, look for its restarts in kubectl describe pod and in kubectl logs -c istio-proxy --previous.',
      ],
      prove: `compare the start times of the pod’s containers (kubectl get pod -o yaml, containerStatuses) with the time of these errors, ${fromTo(time!.fromMs, time!.toMs)} UTC; ss -lnup in the pod shows whether the proxy listens`,
      disproved: `a process in the pod listened on ${address} at that time`,
      exchanges: losses,
    };
  },
};

/** A host other than the queried address rejects, and no query reaches a pod at that time. */
export const noEndpoints: FindingKind = {
  code: 'ND5003',
  title: 'The DNS Service does not lead to the DNS pods',
  name: 'a Service without endpoints',
  inCapture(observed, claims) {
    const ups = upstreams(observed);
    const host = rejectingHosts(observed, claims).find(
      ({ address, host, senders, returned, partly, isBehind }) =>
        !isBehind &&
        !partly &&
        !senders.has(host) &&
        !isLinkLocal(host) &&
        !ups.has(address) &&
        returned.every(({ hops }) => hops.length === 0),
    );
    if (host === undefined) return none;
    const { address, senders, times } = host;
    const ended = endedBefore(host, observed, claims);
    const losses = [...new Set([host, ...ended].flatMap((each) => each.losses))];
    const pods = ended.filter(({ isBehind }) => isBehind);
    const first = (pods.length > 0 ? pods : ended).map(
      (each) => `${each.address} (${timesText(each.times)})`,
    );
    takeSilence(observed, claims, losses);
    return {
      severity: 'critical',
      confidence: 0.9,
      seen: [
        returnedText(host, observed),
        `These errors come from ${listed([...senders])}, not from ${address}. The clients’ node rejects the queries itself and does not pass any to a DNS pod.`,
        host.runsAgain && `After that, ${address} answered again.`,
        first.length > 0 &&
          `Before the node did, ${listed(first)} rejected queries, so DNS pods’ processes ended first, and their endpoints were removed later.`,
      ],
      why: 'A Service without a ready endpoint has no pod to send packets to, so kube-proxy writes a rule that rejects them (REJECT, icmp-port-unreachable). All DNS pods were gone or not ready at the same time. They were scaled to zero, replaced together or evicted, or failed their readiness probe.',
      fix: [
        'Check whether the Service has ready endpoints (kubectl -n kube-system get endpointslices,pods -l k8s-app=kube-dns).',
        'In kubectl -n kube-system get events,deployment,hpa, look for what removed them all, such as an autoscaler with a minimum of 0, a drain of all nodes, or a failing readiness probe.',
        'Run at least two replicas on different nodes, with a PodDisruptionBudget and maxUnavailable 1.',
      ],
      prove: `run kubectl -n kube-system get events --field-selector involvedObject.kind=Deployment and look around ${clock(times[0]!.fromMs)} UTC; during the outage, iptables-save | grep ${address} on the node shows REJECT`,
      disproved:
        'the Service had ready endpoints at that time, or other pods on the same node were answered (then a network policy or a firewall rejects the queries)',
      exchanges: losses,
    };
  },
};

/**
 * Hosts of the Service whose processes ended before the node began to reject queries: they rejected some themselves and
 * answered none after that. The Service itself stands for hosts that are not visible.
 */
function endedBefore(
  { address, times }: RejectingHost,
  observed: Observations,
  claims: Claims,
): readonly RejectingHost[] {
  const { backends, servers } = observed;
  const nodeFromMs = times[0]!.fromMs;
  return rejectingHosts(observed, claims).flatMap((each) => {
    const view = backends.get(each.address) ?? servers.get(each.address);
    const { fromMs, toMs } = each.times.at(-1)!;
    const isOfService =
      each.address === address || backends.get(each.address)?.services.has(address) === true;
    if (!isOfService || view === undefined || !each.senders.has(each.host)) return [];
    // Nodes learn at different times that the last endpoint is gone.
    if (fromMs > nodeFromMs || answered(view.within(toMs, nodeFromMs)) > 0) return [];
    const losses = each.losses.filter(({ sentMs }) => sentMs >= fromMs - SAME_MOMENT_MS);
    return { ...each, losses, times: each.times.slice(-1) };
  });
}

/** The node-local cache was down while its address was still on the node. */
export const nodeCacheEnded: FindingKind = {
  code: 'ND3006',
  title: 'The node-local cache does not answer, and no other server takes over',
  name: 'a dead node-local cache',
  inCapture(observed, claims) {
    const host = rejectingHosts(observed, claims).find(
      (each) =>
        (isLinkLocal(each.host) || cacheAtService(observed, each.address, each.times) !== null) &&
        each.senders.has(each.host) &&
        !(each.partly && answersThem(each, observed)),
    );
    if (host === undefined) return none;
    const { address, losses, times, partly } = host;
    const cache = isLinkLocal(host.host) ? null : cacheAtService(observed, address, times);
    takeSilence(observed, claims, losses);
    return {
      severity: 'critical',
      confidence: 0.93,
      seen: [
        returnedText(host, observed),
        cache === null
          ? `${address} is an address on the node itself, which sends these errors, so the node-local DNS cache was not running.`
          : `No query to ${address} was passed on to a DNS pod, even while it answered. ${cache}, which queries the DNS pods, sent them nothing while ${address} rejected queries. So a node-local cache has both addresses, and it was not running.`,
        partly
          ? `Other clients got replies from ${address} at the same times, because they run on another node, whose cache has the same address.`
          : host.runsAgain && 'After that, it answered again.',
      ],
      why: 'The node-local cache’s process ended (out of memory, a crash, an upgrade of its DaemonSet). Its address and rules remain on the node, so pods still query it instead of the healthy DNS pods.',
      fix: [
        'Determine why it ended on this node. Find that node’s pod and its RESTARTS with kubectl -n kube-system get pods -o wide -l k8s-app=node-local-dns, then use kubectl -n kube-system describe pod and logs --previous.',
        'Give its DaemonSet a memory limit that it does not reach, and the priority class system-node-critical.',
        'If it stays down, remove its interface and rules on the node (ip link del nodelocaldns), so that pods reach the cluster’s DNS.',
      ],
      prove: `run kubectl -n kube-system get events,pods -l k8s-app=node-local-dns and look around ${clock(times[0]!.fromMs)} UTC; ss -lnup sport = :53 on the node shows whether the cache listens`,
      disproved: `a process on the node listened on ${address}:53 at that time`,
      exchanges: losses,
    };
  },
};

/** True if clients whose queries came back were answered at the same times. */
function answersThem(
  { address, returned, times }: RejectingHost,
  { flows }: Observations,
): boolean {
  const clients = returned.map(({ client }) => client.address);
  return flows
    .between(clients, address)
    .some((flow) =>
      times.some(({ fromMs, toMs }) =>
        flow.isAnsweredBetween(fromMs + SAME_MOMENT_MS, toMs - SAME_MOMENT_MS),
      ),
    );
}

/** One of several servers at an address rejects its share of the queries all the time. */
export const closedEndpoint: FindingKind = {
  code: 'ND3008',
  title: 'A DNS pod behind the Service does not answer',
  name: 'a dead DNS pod behind the Service',
  inCapture(observed, claims) {
    const host = rejectingHosts(observed, claims).find(
      ({ host, isBehind, partly, senders, times }) =>
        partly &&
        !isBehind &&
        senders.has(host) &&
        times.length === 1 &&
        times[0]!.toMs - times[0]!.fromMs >= MOST * (observed.lastMs - observed.firstMs),
    );
    if (host !== undefined && !isSteady(host, observed))
      return excluded('the rejected share changes over time, so processes end and restart');
    if (host === undefined) return none;
    const { address, losses } = host;
    const { asked } = outcomesOf(address, observed);
    claims.take(losses);
    return {
      title: 'One of the DNS Service’s endpoints has no process listening on its port',
      severity: 'critical',
      confidence: 0.9,
      seen: [
        returnedText(host, observed),
        `That is ${share(losses.length, asked)} queries to ${address}, throughout the capture, while the others were answered. ${address} leads to several servers, and one of them rejects its share.`,
      ],
      why: 'That endpoint’s host is up, but no process listens on port 53. The process does not run or listens on another port or address, or the endpoint is a pod that is not a DNS server.',
      fix: [
        'Compare the endpoints with the DNS pods (kubectl -n kube-system get endpointslices,pods -o wide -l k8s-app=kube-dns). Query each endpoint as shown below, and remove or restart the one that rejects queries.',
        'Check the port and address that it listens on (the Corefile, the Service’s targetPort), and its readinessProbe, which should remove it from the Service.',
      ],
      prove: 'run ndots query kubernetes.default.svc.cluster.local @ENDPOINT for each endpoint',
      disproved: 'each endpoint answers when it is queried directly',
      exchanges: losses,
    };
  },
};

/** True if the rejected share stays the same over time, except for chance. */
function isSteady({ address, losses }: RejectingHost, observed: Observations): boolean {
  const { firstMs, lastMs, backends, servers } = observed;
  const { slots, asked: least, perLookup, uneven } = REFUSED_IN_TURN;
  const slotMs = (lastMs - firstMs) / slots;
  const slotOf = (ms: number): number => Math.floor((ms - firstMs) / slotMs);
  const [rejected, asked] = [0, 0].map((zero) => Array.from({ length: slots }, () => zero)) as [
    number[],
    number[],
  ];
  for (const { sentMs } of losses) {
    const slot = slotOf(sentMs);
    if (slot >= 0 && slot < slots) rejected[slot]! += 1 / perLookup;
  }
  const view = backends.get(address) ?? servers.get(address);
  for (const [second, { asked: count }] of view?.history ?? []) {
    const slot = slotOf(Math.max(firstMs, second * 1000));
    if (slot >= 0 && slot < slots) asked[slot]! += count / perLookup;
  }
  return (
    asked.every((count) => count * perLookup >= least) && unevenness(rejected, asked) <= uneven
  );
}

/** An upstream rejects queries at times, which a rollout of DNS pods does not explain. */
export const closedUpstream: FindingKind = {
  code: 'ND3007',
  title: 'A name server stopped answering for a while',
  name: 'a restart or a rollout of the DNS pods',
  inCapture(observed, claims) {
    const ups = upstreams(observed);
    const hosts = rejectingHosts(observed, claims).filter(
      ({ address, host, senders, losses }) =>
        senders.has(host) &&
        !isLinkLocal(host) &&
        answered(outcomesOf(address, observed)) > 0 &&
        (ups.has(address) || losses.every(({ client }) => isForwarder(observed, client.address))),
    );
    if (hosts.length === 0) return none;
    const losses = [...new Set(hosts.flatMap((host) => host.losses))];
    takeSilence(observed, claims, losses);
    const addresses = listed(hosts.map(({ address }) => address));
    return {
      title: 'An upstream rejects queries at times because nothing listens on its port',
      severity: 'critical',
      confidence: 0.9,
      seen: [
        ...hosts.slice(0, ENDS_AGAIN).map((host) => returnedText(host, observed)),
        `These errors come from ${addresses}, so a host with this address is up, but no process listens on the port.`,
        hosts.some(({ partly }) => partly) &&
          `Other queries to ${addresses} were answered at the same times.`,
      ],
      why: 'The upstream server’s process ends and restarts. Or the address leads to several hosts, one of which is not a DNS server, because of an address conflict or a broken member behind a load balancer.',
      fix: [
        `On the host of ${addresses}, look for restarts of the DNS server at these times (its log, systemctl status, the OOM killer).`,
        `If it was running throughout, look for a second host with this address (arping -D -I INTERFACE ${hosts[0]!.address} on its network), or check the load balancer’s members.`,
        'Forward to more than one upstream, so that another one takes over at such times.',
      ],
      prove: `on the network of ${addresses}, tcpdump -eni any arp or icmp shows whether replies and errors come from the same hardware address`,
      disproved: 'the server was running at these times, and only one host has the address',
      exchanges: losses,
    };
  },
};

/** Processes end but still receive queries. They start again, or others take their place. */
export const endedProcesses: FindingKind = {
  code: 'ND3007',
  title: 'A name server stopped answering for a while',
  name: 'a restart or a rollout of the DNS pods',
  inCapture(observed, claims) {
    const ups = upstreams(observed);
    const hosts = rejectingHosts(observed, claims).filter(
      ({ address, host, senders }) =>
        senders.has(host) &&
        !isLinkLocal(host) &&
        !ups.has(address) &&
        answered(outcomesOf(address, observed)) > 0,
    );
    const replaced = hosts.filter((host) => isReplaced(host, observed));
    const again = hosts.filter(
      (host) =>
        host.times.length > 1 ||
        (host.partly && (host.runsAgain || (!host.isBehind && !isSteady(host, observed)))),
    );
    if (replaced.length + again.length === 0) return none;
    const isRollout = replaced.length > 0;
    const theirs = isRollout ? [...replaced, ...again] : again;
    const losses = [...new Set(theirs.flatMap((host) => host.losses))];
    takeSilence(observed, claims, losses);
    return {
      title: isRollout
        ? 'DNS pods still receive queries after they have ended, because endpoints are removed too late'
        : again.some(({ times }) => times.length >= ENDS_AGAIN)
          ? 'DNS processes end and restart again and again (a crash loop), and receive queries while down'
          : 'DNS processes end and restart, and receive queries while they are down',
      severity: 'critical',
      confidence: 0.9,
      seen: [
        ...theirs.slice(0, ENDS_AGAIN).map((host) => returnedText(host, observed)),
        ...replaced.map(
          ({ address }) =>
            `After that, no more queries were sent to ${address} and other pods answered, so its endpoint had been removed.`,
        ),
        ...(isRollout
          ? []
          : again.flatMap(({ address, isBehind, partly }) =>
              partly && !isBehind
                ? `Other queries to ${address} were answered at the same times, so it leads to several servers, some of which ended.`
                : [],
            )),
        'The hosts themselves send these errors, so they are up, but no process listens on their port.',
        othersText(theirs, observed),
      ],
      ...(isRollout ? rolloutAdvice(theirs) : restartAdvice(theirs)),
      exchanges: losses,
    };
  },
};

function outcomesOf(address: string, { backends, servers }: Observations): Outcomes {
  // A server beyond the limit of the table has no counts.
  return (backends.get(address) ?? servers.get(address))?.outcomes ?? noOutcomes();
}

/** Pods of the same Service that lose (nearly) nothing: only some of them end. */
function othersText(
  hosts: readonly RejectingHost[],
  { backends, unreachable }: Observations,
): OptionalText {
  if (!hosts.some(({ isBehind }) => isBehind)) return false;
  const fine = backends.list.filter(
    ({ address, outcomes }) =>
      hosts.every((host) => host.address !== address) &&
      outcomes.asked >= MIN_CASES &&
      lossRate(outcomes) <= SPARED_SHARE &&
      unreachable.get(address) === undefined,
  );
  return (
    fine.length > 0 &&
    `${listed(fine.map(({ address }) => address))}, behind the same address, answered all the time.`
  );
}

/** True if it gets no more queries after its last rejection, and others do. */
function isReplaced({ address, isBehind, times }: RejectingHost, observed: Observations): boolean {
  const view = observed.backends.get(address);
  if (!isBehind || view === undefined || times.length > 1) return false;
  const removedMs = removedFrom(view, observed);
  return removedMs !== null && removedMs >= times[0]!.fromMs;
}

function returnedText(
  { address, returned, losses, times }: RejectingHost,
  observed: Observations,
): string {
  const clients = new Set(losses.map(({ client }) => client.address));
  return `${share(returned.length, losses.length)} lost queries to ${address} drew ICMP port unreachable, ${timesText(times)}, from ${askersText(observed, clients)}.`;
}

function timesText(times: readonly RejectedTime[]): string {
  return listed(
    times.map(({ fromMs, toMs }) => fromTo(fromMs, toMs)),
    ENDS_AGAIN,
  );
}

type Advice = Pick<FoundCause, 'why' | 'fix' | 'prove' | 'disproved'>;

function rolloutAdvice([first]: readonly RejectingHost[]): Advice {
  return {
    why: 'DNS pods were replaced. Each one ended immediately, while the nodes’ rules still led to it. Its share of the queries is rejected until its endpoint is removed on every node.',
    fix: [
      'Make a terminating DNS pod answer until the rules are updated. Set health { lameduck 20s } and a longer terminationGracePeriodSeconds.',
      'Set a readinessProbe on /ready with periodSeconds 3 and failureThreshold 1, and maxUnavailable 1 and maxSurge 1.',
      'If kube-proxy takes seconds to write its rules, check its log and iptables.minSyncPeriod.',
    ],
    prove: `run kubectl -n kube-system get events,replicasets,endpointslices -l k8s-app=kube-dns and look around ${clock(first!.times[0]!.fromMs)} UTC`,
    disproved: 'no DNS pod was replaced at these times',
  };
}

function restartAdvice([first]: readonly RejectingHost[]): Advice {
  return {
    why: 'The server’s process ended and restarted while its pod remained an endpoint. It ran out of memory, failed its liveness probe, or crashed. If pods were replaced at these times, they ended before their endpoints were removed (a rollout without lameduck).',
    fix: [
      'Check whether DNS pods restart (RESTARTS in kubectl -n kube-system get pods -l k8s-app=kube-dns), and why (Last State in kubectl -n kube-system describe pod, such as OOMKilled or Error, and logs --previous).',
      'If they run out of memory, raise the limit. If the liveness probe kills them, raise timeoutSeconds and failureThreshold.',
      'If they were replaced, set health { lameduck 20s }, a longer terminationGracePeriodSeconds, and a readinessProbe on /ready.',
    ],
    prove: `run kubectl -n kube-system get events,pods -l k8s-app=kube-dns and look for restarts, OOMKilled or Unhealthy around ${clock(first!.times[0]!.fromMs)} UTC`,
    disproved: 'no DNS pod restarted, ended or was replaced at these times',
  };
}
