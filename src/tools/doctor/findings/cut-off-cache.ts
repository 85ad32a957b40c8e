/** Node-local caches that cannot reach the cluster's DNS but reach their other upstreams. */
import { isLost, sentSpan } from '../../capture/pair/seen-exchange.ts';
import { isFailure, wrong } from '../observe/outcomes.ts';
import { isLinkLocal } from '../observe/roles.ts';
import { capitalised, fromTo, keysOf, listed } from '../texts.ts';
import { CLUSTER_TTL_MS, MIN_FOUND_NAMES } from '../thresholds/errors.ts';
import { MIN_CASES, RARE_SHARE } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** From some moment on, a node cache answers external names but no cluster names. */
export const cutOffCache: FindingKind = {
  code: 'ND4070',
  title: 'The node-local cache cannot reach the cluster’s DNS, but reaches its other upstreams',
  name: 'a node-local cache without the cluster’s DNS',
  inCapture(observed, claims) {
    const { domains, names, ways, servers } = observed;
    const caches = servers.list.filter(({ address }) => isLinkLocal(address));
    if (caches.length === 0) return unknown('no query to a link-local address was seen');
    for (const { address } of caches) {
      const failures = observed.affectedExchanges(
        (each) =>
          each.server.address === address &&
          domains.isOfCluster(each.name) &&
          !claims.names.has(each.name) &&
          !claims.isExplained(each) &&
          (isLost(each) || isFailure(each)),
      );
      const failed = new Set(failures.map(({ name }) => name));
      if (failures.length < MIN_CASES || failed.size < MIN_FOUND_NAMES) continue;
      const { fromMs, toMs } = sentSpan(failures);
      // If other cluster names are answered, and not from memory, a single Service fails.
      const isAnswered = names.list.some(
        ({ name, lastFoundMs, lastNegativeMs }) =>
          domains.isOfCluster(name) &&
          [lastFoundMs, lastNegativeMs].some((ms) => ms > fromMs + CLUSTER_TTL_MS && ms < toMs),
      );
      const { outside } = ways.between(fromMs, toMs);
      const bad = wrong(outside);
      if (isAnswered || outside.asked < MIN_CASES || bad > RARE_SHARE * outside.asked) continue;
      claims.take(failures.filter(isLost));
      for (const name of failed) claims.names.add(name);
      claims.late.add(address);
      if (claims.withoutTcp.size > 0)
        return excluded('DNS over TCP is blocked, which explains the failures at the node cache');
      return {
        subject: address,
        severity: 'critical',
        confidence: 0.9,
        seen: [
          `${capitalised(fromTo(fromMs, toMs))}, ${failures.length} queries to ${address} for cluster names got SERVFAIL or no reply, and none was answered that the cache did not have. The names include ${listed([...failed])}`,
          `During this time, ${outside.asked - bad} of ${outside.asked} queries for external names were answered.`,
        ],
        why: `${address} is a node-local cache. It forwards cluster names to the cluster’s DNS, most often over TCP (force_tcp), and external names to another upstream over UDP. The path to the cluster’s DNS is blocked, or its pods do not answer this node. The cache and its other upstreams work. Cached cluster names are answered until their TTL expires.`,
        fix: [
          'On the node, query the DNS pods over both protocols, as shown below. If only TCP fails, open TCP port 53 from the nodes to the DNS pods (network policies, firewalls, security groups).',
          'Until then, use prefer_udp instead of force_tcp in the cache’s forward for the cluster domain.',
          'If both fail, check the DNS pods and the path from this node to them.',
        ],
        prove:
          'on the node, run ndots query kubernetes.default.svc.cluster.local @DNS-POD +tcp, then the same without +tcp',
        disproved: `these queries are answered from the node, or ${address} answers other cluster names at that time`,
        exchanges: failures,
        affected: keysOf(failures, ({ client }) => client.address),
      };
    }
    return excluded('node-local caches answer cluster names, or external names fail as well');
  },
};
