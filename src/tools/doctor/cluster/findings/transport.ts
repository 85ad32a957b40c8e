/** What gets lost on the way: TCP, large replies, one of two queries, new connections. */
import { excluded, unknown } from '../../findings/finding.ts';
import { missingFragments } from '../../findings/missing-fragments.ts';
import { pairRace } from '../../findings/pair-race.ts';
import { tableFull } from '../../findings/table-full.ts';
import { tcpBlocked } from '../../findings/tcp-blocked.ts';
import { podAt } from '../facts.ts';
import { askingRule, clusterRule, failuresOf, finding, type ClusterRule } from './rule.ts';

/** TCP on the DNS port is closed. */
export const tcpClosed: ClusterRule = askingRule(tcpBlocked, (answers, facts, about) => {
  const failed = failuresOf(answers, 'tcp');
  if (failed === null) return unknown('nobody could be asked over TCP');
  if (failed.length === 0) return excluded('DNS pods and service answer over TCP');
  return finding(about, {
    severity: 'critical',
    confidence: 0.95,
    seen: failed
      .slice(0, 4)
      .map(({ target, text }) => `${podAt(facts, target)} over TCP: ${text}; over UDP it answers.`),
    affected: failed.map(({ target }) => podAt(facts, target)),
    why: 'An answer that does not fit into a packet has to be asked for again by TCP. A network policy that names UDP only, a firewall, or a service without a port for TCP is in the way: glibc waits more than a minute where packets vanish.',
    fix: [
      'Open TCP port 53 wherever UDP port 53 is open: network policies, security groups, the service (dns-tcp).',
    ],
    prove: `ndots query kubernetes.default.svc.${answers.plan.domain} @${failed[0]!.target} +tcp`,
    disproved: 'that query is answered from a pod',
  });
});

/** Replies of some sizes do not come, are too large, or say nothing of EDNS. */
export const largeReplies: ClusterRule = askingRule(missingFragments, (answers, facts, about) => {
  const sizes = [512, 1232, 4096];
  const asked = sizes.flatMap((size) => {
    const failed = failuresOf(answers, `edns-${size}`);
    return failed === null ? [] : [{ size, failed }];
  });
  const cut = failuresOf(answers, 'truncation');
  // That TCP is closed is another finding.
  const tcp = failuresOf(answers, 'tcp') ?? [];
  const failed = [
    ...asked.flatMap((each) =>
      each.failed.map(({ target, text }) => ({ target, text: `EDNS ${each.size}: ${text}` })),
    ),
    ...(tcp.length > 0 ? [] : (cut ?? [])),
  ];
  if (asked.length === 0) return unknown('nobody could be asked with EDNS');
  if (failed.length === 0)
    return cut === null
      ? unknown('EDNS is answered, but no name with an answer of more than 512 bytes is known')
      : excluded('replies of all sizes come, and what is too large is cut and whole over TCP');
  return finding(about, {
    severity: 'critical',
    confidence: 0.85,
    seen: failed.slice(0, 4).map(({ target, text }) => `${podAt(facts, target)}: ${text}.`),
    affected: [...new Set(failed.map(({ target }) => podAt(facts, target)))],
    why: 'Between here and the server packets of a certain size get lost, or something on the way does not know EDNS: an overlay network with a smaller MTU, a firewall, a proxy for DNS, or a server that sends more than the client takes.',
    fix: [
      'bufsize 1232 in the Corefile keeps replies below what networks carry whole.',
      'An MTU of the overlay network that is smaller than that of the nodes’ by its headers.',
    ],
    prove: `ndots query ${answers.plan.large ?? `kubernetes.default.svc.${answers.plan.domain}`} @${failed[0]!.target} +bufsize=4096, and +bufsize=512`,
    disproved: 'both are answered',
  });
});

/** Of two queries that leave together, one is lost. */
export const raceOfPairs: ClusterRule = askingRule(
  pairRace,
  (answers, { kernel, proxyMode }, about) => {
    const result = answers.checks.get('pairs');
    if (result === undefined || result.state === 'unknown')
      return unknown('the service could not be asked');
    const lost = result.observations.filter(({ text }) => text.includes('one of the two was lost'));
    const failed = kernel === null ? 0 : kernel[1].insertFailed - kernel[0].insertFailed;
    if (lost.length === 0)
      return failed > 0
        ? unknown(`no pair was lost, but insert_failed of this machine grew by ${failed}`)
        : excluded('A and AAAA that leave together are both answered');
    return finding(about, {
      severity: 'critical',
      confidence: failed > 0 ? 0.95 : 0.7,
      seen: [
        ...lost.map(({ target, text }) => `${target}: ${text}.`),
        ...(failed > 0 ? [`insert_failed of this machine grew by ${failed} meanwhile.`] : []),
        ...(proxyMode === null ? [] : [`kube-proxy’s mode is ${proxyMode}.`]),
      ],
      affected: ['pods with glibc or musl that ask through the service’s address'],
      why: 'Both packets reach the translation of the service’s address before either has its entry in the connection tracking, and one is dropped.',
      fix: [
        'A cache on each node: no translation of addresses on the way to it, so no race.',
        'glibc: dnsConfig option single-request-reopen. It does nothing with musl.',
      ],
      prove: 'on the nodes, twice: conntrack -S | grep -o "insert_failed=[0-9]*"',
      disproved: 'insert_failed stays as it is while lookups take 5 s',
    });
  },
);

/**
 * The connection tracking table is full: of this machine, for others are not to be read from here.
 */
export const trackingFull: ClusterRule = clusterRule(tableFull, ({ kernel }, about) => {
  if (kernel === null) return unknown('the connection tracking of nodes cannot be read from here');
  const [before, after] = kernel;
  const dropped = after.drop - before.drop;
  const share = after.max === 0 ? 0 : after.count / after.max;
  if (share < 0.95 && !(dropped > 0 && share > 0.8))
    return excluded(`on this machine ${after.count} of ${after.max} entries are taken`);
  return finding(about, {
    severity: 'critical',
    confidence: dropped > 0 ? 0.95 : 0.75,
    seen: [
      `${after.count} of ${after.max} entries of this machine’s connection tracking are taken.`,
      ...(dropped > 0 ? [`${dropped} packets were dropped meanwhile.`] : []),
    ],
    affected: ['this machine, and all pods on it'],
    why: 'A query from a new port needs a new entry; when there is none left, it is dropped. Connections that stand go on, which is why it looks like DNS.',
    fix: [
      'Raise it: sysctl net.netfilter.nf_conntrack_max (kube-proxy: conntrack.maxPerCore).',
      "See who fills it: conntrack -L | awk '{print $5}' | sort | uniq -c | sort -n | tail",
    ],
    prove: 'dmesg | grep "table full", and conntrack -S twice',
    disproved: 'no message of the kernel, and drop stays as it is',
  });
});
