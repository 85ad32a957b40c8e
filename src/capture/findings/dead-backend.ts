import { lossRate } from '../evidence/outcomes.ts';
import { excluded, listed, share, unknown, type Rule } from './finding.ts';
import { lossesTo } from './losses.ts';

/** Of several servers behind one service some never answer. */
export const deadBackend: Rule = {
  code: 'ND3008',
  title: 'One of the DNS pods behind the service does not answer',
  name: 'a dead DNS pod behind the service',
  check(observed, claims) {
    const { list } = observed.backends;
    if (list.length < 2)
      return unknown(
        'the capture does not show which DNS pods the service’s address stands for (capture on the node)',
      );
    const dead = list.filter(({ outcomes }) => outcomes.asked >= 3 && lossRate(outcomes) >= 0.95);
    const fine = list.filter(({ outcomes }) => outcomes.asked >= 3 && lossRate(outcomes) <= 0.1);
    if (dead.length === 0 || fine.length === 0)
      return excluded('all DNS pods that were asked answer');
    const losses = dead.flatMap(({ address }) => lossesTo(claims, address));
    if (losses.length < 3)
      return unknown('what got lost on its way to a pod is explained otherwise');
    claims.take(losses);
    const names = dead.map(({ address }) => address);
    const asked = dead.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
    const several = dead.length > 1;
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.9,
      seen: [
        `Of queries that the service’s address took to ${listed(names)}, ${share(losses.length, asked)} got no reply.`,
        `${fine.length} other ${fine.length === 1 ? 'pod answers' : 'pods answer'} ${fine.reduce((sum, { outcomes }) => sum + outcomes.asked - outcomes.lost, 0)} queries of the same clients.`,
      ],
      why: several
        ? 'What is lost depends on where it goes, and on nothing else. Pods of other nodes that cannot be reached are often the network between nodes: an overlay (VXLAN) whose checksums a network card gets wrong, or a route that is missing. Otherwise the pods are dead, and still endpoints of the service.'
        : 'The pod is dead, hung or cut off, and is still an endpoint of the service: each query has the chance of one in so many pods to go there, and its client waits 5 s.',
      fix: [
        `See whether these pods live: kubectl -n kube-system get pods -o wide | grep -e ${names.slice(0, 3).join(' -e ')}; delete the one that does not answer.`,
        'If they answer on their own node and not from another: the network between nodes (ethtool -K flannel.1 tx-checksum-ip-generic off for the VXLAN checksum bug; kernel messages "bad checksum" on the receiver).',
        'A readinessProbe on /ready takes a dead pod out of the service.',
      ],
      prove: names
        .slice(0, 2)
        .map((name) => `ndots query kubernetes.default.svc.cluster.local @${name}`)
        .join('; '),
      disproved: 'these pods answer when they are asked directly from the client’s node',
      exchanges: losses,
    };
  },
};
