/**
 * One client that gets nothing at the service’s address, where the queries of all others are seen
 * at the DNS pods, behind the translation.
 */
import { parseAddress } from '../../../server/base/ip.ts';
import { answered, lossRate } from '../observe/outcomes.ts';
import type { ClientView } from '../observe/client-view.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed } from '../texts.ts';
import { askedForCluster, isServer } from '../observe/roles.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { CUT_CLIENT, CUT_CLIENT_OTHERS } from '../thresholds/transport.ts';

/**
 * The service’s address answers nothing to one client, and the pods behind it answer all others.
 */
export const cutAlone: FindingKind = {
  code: 'ND3004',
  title: 'Some pods are cut off from DNS, others are not',
  name: 'a network policy',
  inCapture(observed, claims) {
    if (observed.clients.size < 2) return unknown('the capture has one client');
    for (const { address, outcomes, clients } of observed.servers.list) {
      const [client] = clients;
      if (client === undefined || clients.size > 1 || answered(outcomes) > 0) continue;
      if ((observed.clients.get(client)?.servers.size ?? 0) > 1) continue;
      const losses = claims.openTo(address);
      const { fromMs, toMs } = sentSpan(losses);
      const ports = new Set(losses.map((loss) => loss.client.port));
      if (losses.length < CUT_CLIENT.queries || ports.size < CUT_CLIENT.ports) continue;
      if (toMs - fromMs < CUT_CLIENT.ms) continue;
      // A query that was taken to a pod got as far as that.
      if (losses.some(({ hops }) => hops.length > 0)) continue;
      if (!losses.some(({ name }) => observed.domains.isOfCluster(name))) continue;
      const { peers, pods } = behindTranslation(observed, client, address);
      if (peers.length < CUT_CLIENT_OTHERS.clients) continue;
      claims.take(losses);
      return {
        code: this.code,
        title: this.title,
        severity: 'critical',
        confidence: 0.82,
        seen: [
          `${client}: ${losses.length} queries to ${address} got no reply, from ${ports.size} ports and for every name, and none was seen on its way to a DNS pod.`,
          `${peers.length} other pods get answers from ${listed(pods)}. In this capture the Service’s address is already translated to a pod’s, so their queries to it are not visible. Cluster names are answered, so the servers and the Service’s rules are fine.`,
        ],
        why: 'Losses that depend only on the client are caused by a rule: a NetworkPolicy (egress from this pod, or ingress to the DNS pods) does not allow it to reach DNS.',
        fix: [
          `Allow UDP and TCP port 53 from this pod to ${address} and to the DNS pods behind it (kubectl get networkpolicy -A).`,
          'If it runs on a different node from the others, check that kube-proxy (or its replacement) has the Service’s rules there.',
        ],
        prove: `from this pod: ndots query kubernetes.default @${address}, and again at a DNS pod: @${pods[0]}; then the same from another pod on its node`,
        disproved:
          'no policy selects this pod, or other pods on its node get no answer from that address either',
        exchanges: losses,
      };
    }
    return excluded('no client is cut off while others are answered');
  },
};

/**
 * Clients that are answered names of the cluster by servers that are in their own network, which
 * the silent address is not.
 */
function behindTranslation(
  observed: Observations,
  client: string,
  silent: string,
): { readonly peers: readonly ClientView[]; readonly pods: readonly string[] } {
  const { servers, clients } = observed;
  const distance = commonBits(client, silent);
  const pods = [...askedForCluster(observed).found].filter(
    (address) =>
      address !== silent &&
      commonBits(client, address) > distance &&
      servers.get(address)?.clients.has(client) !== true,
  );
  const isPod = new Set(pods);
  const peers = clients.list.filter(
    ({ address, outcomes, servers: asked }) =>
      address !== client &&
      // A server itself forwards the queries of others.
      !isServer(observed, address) &&
      commonBits(client, address) > distance &&
      answered(outcomes) >= CUT_CLIENT_OTHERS.answers &&
      lossRate(outcomes) < CUT_CLIENT_OTHERS.lost &&
      [...asked.keys()].every((server) => isPod.has(server)),
  );
  return { peers, pods };
}

/** The number of leading bits that two addresses share; -1 for different families. */
function commonBits(one: string, other: string): number {
  const [first, second] = [parseAddress(one), parseAddress(other)];
  if (first === null || second === null || first.length !== second.length) return -1;
  for (let at = 0; at < first.length; at++) {
    const differs = first[at]! ^ second[at]!;
    if (differs !== 0) return at * 8 + Math.clz32(differs) - 24;
  }
  return first.length * 8;
}
