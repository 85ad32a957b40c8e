/** Search domains that break names, and clients that give up at them. */
import { excluded, unknown } from '../../findings/finding.ts';
import { listed } from '../../texts.ts';
import { searchDomainFails } from '../../findings/search-domain-fails.ts';
import { searchStops } from '../../findings/search-stops.ts';
import { wildcardDomain } from '../../findings/wildcard-domain.ts';
import type { SuffixReplies } from '../../../probe/checks/suffix-hazards.ts';
import { outcome } from '../../../probe/probe-queries.ts';
import { TYPE } from '../../../../server/wire/iana.ts';
import type { Answers } from '../asking.ts';
import { askingRule, finding, type ClusterRule } from './rule.ts';

const noSuffix = unknown('nobody could be asked for names below search domains');

/** A name that was made up has an address. */
export const wildcard: ClusterRule = askingRule(wildcardDomain, (answers, { clients }, about) => {
  const { suffixes } = answers;
  if (suffixes.size === 0) return noSuffix;
  const found = [...suffixes].filter(([, replies]) => replies.wildcard.length > 0);
  if (found.length === 0)
    return excluded(`nothing answers for made-up names below ${listed([...suffixes.keys()])}`);
  const theirs = (clients ?? []).filter(({ searches }) =>
    searches.some((search) => found.some(([suffix]) => `${search.replace(/\.$/, '')}.` === suffix)),
  );
  return finding(about, {
    severity: 'critical',
    confidence: 0.96,
    seen: found.map(
      ([suffix, replies]) =>
        `${replies.random}, a made-up name, has ${replies.wildcard.join(' ')}: *.${suffix} exists.`,
    ),
    affected:
      theirs.length > 0
        ? theirs.map(({ namespace, workload }) => `${namespace}/${workload}`)
        : ['pods with this domain in their search path'],
    why: 'Names with fewer dots than ndots are tried with each search domain behind them first. There the wildcard answers, and the program connects to the wrong host: certificates that do not fit are how it shows.',
    fix: [
      'Take the domain out of the search path: of the node’s resolv.conf (kubelet hands it on), or of dnsConfig.',
      'dnsConfig option ndots 1 or 2, or names with a dot at the end.',
    ],
    prove: `ndots query ${found[0]![1].random}: any name has the same address`,
    disproved: '',
  });
});

/** A search domain that answers with an error, or not at all. */
export const failingSuffix: ClusterRule = askingRule(
  searchDomainFails,
  (answers, _facts, about) => {
    const { suffixes } = answers;
    if (suffixes.size === 0) return noSuffix;
    const found = [...suffixes].filter(
      ([, replies]) => replies.odd !== null && replies.wildcard.length === 0,
    );
    if (found.length === 0)
      return excluded('names below search domains that are not there are NXDOMAIN');
    return finding(about, {
      severity: found.some(([suffix]) => suffix.startsWith('svc.')) ? 'critical' : 'warning',
      confidence: 0.9,
      seen: found.map(
        ([suffix, replies]) =>
          `${replies.random}: ${ofOdd(replies)} in place of NXDOMAIN, as all below ${suffix}`,
      ),
      affected: ['pods with this domain in their search path'],
      why: 'Each lookup passes it: musl (Alpine) ends there and fails, glibc and Go wait or ask again before they go on.',
      fix: ['Take the domain out of the search path, or let whoever serves it answer NXDOMAIN.'],
      prove: `ndots query ${found[0]![1].random}`,
      disproved: 'it is NXDOMAIN when asked again: then its server was away for a moment',
    });
  },
);

function ofOdd({ odd }: SuffixReplies): string {
  return outcome(odd!, TYPE.A);
}

/** A short name is not found by some of the resolvers that programs have. */
export const walk: ClusterRule = askingRule(searchStops, (answers: Answers, _facts, about) => {
  const result = answers.checks.get('walk');
  if (result === undefined || result.state === 'unknown')
    return unknown('no search path could be walked');
  const failed = result.observations.filter(({ state }) => state === 'failed');
  if (failed.length === 0)
    return excluded('glibc, musl and Go all find kubernetes.default through the search path');
  return finding(about, {
    severity: 'critical',
    confidence: 0.85,
    seen: failed.map(({ target, text }) => `${target}: ${text}.`),
    affected: failed.map(({ target }) => `programs with ${target}`),
    why: 'Played with the models of these resolvers against the service. musl goes on along the search path only after NXDOMAIN; another answer on the way ends its walk.',
    fix: ['See what the suffixes on the way answer: ndots trace kubernetes.default --client all'],
    prove: 'ndots trace kubernetes.default --client all @ the address of the service',
    disproved: 'a pod with that C library finds the name',
  });
});
