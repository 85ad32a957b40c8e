/** kube-proxy keeps sending known source ports to a terminating pod until it is unready. */
import { capitalised } from '../texts.ts';
import { type FindingKind, excluded, unknown } from './finding.ts';

/** kube-proxy keeps sending known source ports to a terminating pod until it is unready. */
export const lossyRollouts: FindingKind = {
  code: 'ND1004',
  title: 'Each rollout of the DNS pods loses queries',
  name: 'rollouts that lose queries',
  inCluster({ configuration }) {
    if (configuration === null) return unknown('no Corefile could be read');
    const found = configuration.findings.filter(({ code }) => code === READINESS_RULE);
    if (found.length === 0)
      return excluded(
        'no DNS pod is known to have a readiness probe that fails only after lameduck',
      );
    return {
      severity: 'info',
      confidence: 0.8,
      seen: found.slice(0, 5).map(({ text }) => `${capitalised(text)}.`),
      why: 'A terminating pod gets no new connections, but a client that reuses a source port still reaches it. kube-proxy removes tracked connections only when the pod is no longer serving. In a real cluster with 300 queries a second, each rollout lost 7 to 97 queries.',
      fix: [...new Set(found.flatMap(({ remedy }) => remedy ?? []))],
      prove: 'ndots rollout rehearse --model --max-unavailable 1 --ports random --rate 300',
      disproved: 'the nodes do not use kube-proxy, or the DNS pods have no Service',
    };
  },
};

/** The lint rule about readiness and lameduck. */
const READINESS_RULE = 'CF59';
