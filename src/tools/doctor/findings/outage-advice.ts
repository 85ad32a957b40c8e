/**
 * What a silence of a server means, and what to do: by whether it came back, whether a rollout was
 * seen, and whose server it is.
 */
import type { Finding } from './finding.ts';

/** How a server was silent. */
export interface Outage {
  /** It answers again before the capture ends. */
  readonly isBack: boolean;
  /** A log says that a DNS pod ended. */
  readonly isRollout: boolean;
  /** DNS pods ask it, and no program does. */
  readonly isUpstream: boolean;
  /** `03:07:20`, UTC. */
  readonly at: string;
}

const lameduck =
  'Let a DNS pod that ends go on answering for longer than that: health { lameduck 20s } and terminationGracePeriodSeconds above it; readinessProbe on /ready with periodSeconds 3 and failureThreshold 1.';
const replicas =
  'More than one replica, spread over nodes, and a PodDisruptionBudget of at most one.';
const look =
  'See what happened to the server, or to the pods behind the address, at that time: restarts, a rollout, memory and processor limits, its node.';

/** The parts of the finding that depend on it. */
export function outageAdvice({
  isBack,
  isRollout,
  isUpstream,
  at,
}: Outage): Pick<Finding, 'why' | 'fix' | 'prove' | 'disproved'> {
  const events = `kubectl -n kube-system get events,endpointslices -l k8s-app=kube-dns around ${at} UTC; kubectl -n kube-system get pods for restarts`;
  const disproved =
    'no DNS pod ended, restarted or moved at that time, and the node of the clients lost other packets too';
  if (isUpstream)
    return {
      why: `The server that the DNS pods ask ${isBack ? 'was away, or hung, for a while' : 'is gone, hangs, or cannot be reached any more'}: what is not in their memory has no answer meanwhile.`,
      fix: [
        'See what happened to it, and to the way from the nodes to it (a firewall, a route), at that time.',
        'More than one upstream, with health checks (forward does that).',
        'Names that were answered before can bridge the time: cache { serve_stale }.',
      ],
      prove:
        'from a node: ndots query example.com @SERVER; coredns_forward_healthcheck_broken_total',
      disproved: 'it answers others at that time: then it is the way from these nodes to it',
    };
  if (!isBack && !isRollout)
    return {
      why: 'Everything stops at one moment, for all names: the server (or what stands behind the address) hangs or is gone, or something on the way lets nothing through from then on.',
      fix: [
        look,
        'If it is well: see what changed on the way (network policies, the rules of the node, its routes).',
        replicas,
      ],
      prove: events,
      disproved,
    };
  return {
    why: `${isBack ? 'Everything stops at once and comes back at once: the server behind the address was gone, or stood still' : 'The server behind the address went away, and others took its place'}. When a DNS pod ends, the service goes on sending packets to it until its endpoint is removed on every node: that takes as long as the readiness probe needs to fail, and the rules to be written.`,
    fix: isRollout
      ? [lameduck, replicas]
      : [
          look,
          `If DNS pods were replaced then: ${lameduck[0]!.toLowerCase()}${lameduck.slice(1)}`,
          replicas,
        ],
    prove: events,
    disproved,
  };
}
