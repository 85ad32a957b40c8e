/**
 * One client that gets no reply from the Service’s address, while the queries of all others are
 * seen at the DNS pods, already translated.
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

export const cutAlone: FindingKind = {
  code: 'ND3004',
  title: 'Some pods are cut off from DNS, while others are not',
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
      // A query that was translated to a pod has reached it.
      if (losses.some(({ hops }) => hops.length > 0)) continue;
      if (!losses.some(({ name }) => observed.domains.isOfCluster(name))) continue;
      const { peers, pods } = behindTranslation(observed, client, address);
      if (peers.length < CUT_CLIENT_OTHERS.clients) continue;
      claims.take(losses);
      return {
        severity: 'critical',
        confidence: 0.82,
        seen: [
          `${client} sent ${losses.length} queries to ${address} from ${ports.size} ports. None got a reply, whatever the name, and none was seen on its way to a DNS pod.`,
          `${peers.length} other pods get answers from ${listed(pods)}. Their queries to the Service’s address are not visible, because this capture shows them already translated to a pod’s address. Cluster names are answered, so the servers and the Service’s rules work.`,
        ],
        why: 'Losses that depend only on the client are caused by a rule. A NetworkPolicy (egress from this pod, or ingress to the DNS pods) does not allow this pod to reach DNS.',
        fix: [
          `Allow UDP and TCP port 53 from this pod to ${address} and to the DNS pods behind it (kubectl get networkpolicy -A).`,
          'If the pod runs on a different node from the others, check that kube-proxy (or its replacement) has the Service’s rules there.',
        ],
        prove: `run ndots query kubernetes.default @${address} in this pod, repeat it with @${pods[0]} (a DNS pod), then run both in another pod on the same node`,
        disproved:
          'no policy selects this pod, or other pods on its node get no answer from that address either',
        exchanges: losses,
      };
    }
    return excluded('no client is cut off while others are answered');
  },
};

/**
 * Clients that get cluster names from servers in their own network, which does not contain the
 * silent address.
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
      // A server forwards other clients' queries.
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
