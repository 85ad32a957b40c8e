/** Reverse lookups of private addresses that no server answers. */
import { latencyOf } from '../../capture/pair/seen-exchange.ts';
import { isFailure, noOutcomes, addOutcomes, wrong } from '../observe/outcomes.ts';
import { isPrivateReverse } from '../observe/reverse-lookup.ts';
import { upstreams } from '../observe/roles.ts';
import { keysOf, listed, sentence, share, took } from '../texts.ts';
import { FELT_MS, MANY_ERRORS, MIN_CASES, MOST, SPARED_SHARE } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const privateReverse: FindingKind = {
  code: 'ND2015',
  title: 'Reverse lookups of private addresses fail because no server has their zone',
  name: 'private reverse zones that no server has',
  inCapture(observed, claims) {
    const [own, others] = [noOutcomes(), noOutcomes()];
    const names = new Set<string>();
    for (const { name, type, outcomes } of observed.names.list) {
      const isOwn = isPrivateReverse(name, type);
      addOutcomes(isOwn ? own : others, outcomes);
      if (isOwn) names.add(name);
    }
    if (own.asked === 0) return unknown('no reverse lookup of a private address was seen');
    const losses = claims.open.filter(({ name, type }) => isPrivateReverse(name, type));
    const late = observed.affected
      .flatMap(({ exchanges }) => exchanges)
      .filter(
        (each) =>
          isPrivateReverse(each.name, each.type) &&
          !isFailure(each) &&
          (latencyOf(each) ?? 0) >= FELT_MS,
      );
    const bad = own.servfail + own.refused + own.error + losses.length + late.length;
    if (
      bad < MIN_CASES ||
      bad < MOST * own.asked ||
      wrong(others) > SPARED_SHARE * others.asked ||
      claims.names.has([...names][0]!)
    )
      return excluded(
        `${share(bad, own.asked)} reverse lookups of private addresses fail, compared with ${share(wrong(others), others.asked)} other queries`,
      );
    claims.take(losses);
    for (const name of names) claims.names.add(name);
    const failed = observed.affected
      .flatMap(({ exchanges }) => exchanges)
      .filter(({ name, type }) => isPrivateReverse(name, type));
    const longest = failed.reduce((most, each) => Math.max(most, latencyOf(each) ?? 0), 0);
    const silent = keysOf(losses, (each) => each.server.address);
    const behind = upstreams(observed);
    const upstream = silent.filter((server) => behind.has(server));
    const server = silent[0] ?? keysOf(failed, (each) => each.server.address)[0];
    return {
      severity: bad >= MANY_ERRORS ? 'critical' : 'warning',
      confidence: 0.92,
      seen: [
        sentence(
          `${share(bad, own.asked)} PTR queries for private addresses failed (${own.servfail} SERVFAIL, ${losses.length} without reply, ${late.length} late)${longest >= FELT_MS ? `, after up to ${took(longest)}` : ''}: ${listed([...names])}`,
        ),
        upstream.length > 0 &&
          `The upstream, ${listed(upstream)}, received ${losses.length} of them and answered none.`,
        `Of all other queries, ${share(wrong(others), others.asked)} failed.`,
      ],
      why: `The DNS server has no reverse zone for these addresses, so it forwards the queries, and ${upstream.length === 0 ? 'the upstream' : listed(upstream)} does not answer for private addresses. Programs that look up the name of each peer (sshd, databases, Java, access logs) wait until they time out.`,
      fix: [
        'Serve the reverse zones in the cluster with kubernetes cluster.local in-addr.arpa ip6.arpa { … } in the Corefile. Add fallthrough only if another server has such a zone.',
        'For other private ranges, answer NXDOMAIN immediately, as in template ANY ANY 10.in-addr.arpa { rcode NXDOMAIN }.',
        'Turn reverse lookups off in the program (UseDNS no, skip_name_resolve).',
      ],
      prove: `run time ndots query ${[...names][0]} PTR @${server ?? 'SERVER'}`,
      disproved: 'forward lookups fail in the same way at the same time',
      exchanges: losses.length > 0 ? losses : failed,
    };
  },
};
