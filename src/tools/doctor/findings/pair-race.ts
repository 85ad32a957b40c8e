/** A and AAAA queries that are sent together, of which one is lost. */
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind, notAsked } from './finding.ts';
import { percent, share } from '../texts.ts';
import { FELT_SHARE, MIN_CASES } from '../thresholds/evidence.ts';
import {
  MANY_LOST_HALVES,
  MIN_PAIRS_ALONE,
  PAIR_IMMUNE,
  PAIR_REST,
  SECOND_OF_PAIR,
  SURE_PAIRS,
} from '../thresholds/transport.ts';

export const pairRace: FindingKind = {
  code: 'ND3001',
  title: 'One of two queries sent together is lost (conntrack race)',
  name: 'the conntrack race',
  inCapture(observed, claims) {
    const { one, two } = observed.pairs;
    if (one.asked < 2)
      return unknown(
        one.asked === 0
          ? 'no program sent A and AAAA queries from one port'
          : 'only one pair of A and AAAA queries was sent from one port',
      );
    const failed = observed.counters.get('insertFailed');
    const clashes = observed.counters.get('clashResolve');
    if (failed === 0 && (clashes ?? 0) > 0)
      return excluded('the kernel resolves the race (clash_resolve rises, insert_failed does not)');
    const open = new Set(claims.open);
    const halves = observed.pairs.halves.filter((half) => open.has(half));
    const isFew =
      halves.length === MIN_PAIRS_ALONE &&
      claims.open.length === MIN_PAIRS_ALONE &&
      one.secondLost === one.oneLost;
    if (halves.length < MIN_CASES && !isFew)
      return excluded(
        one.oneLost === 0
          ? `none of ${one.asked} pairs of A and AAAA from one port lost only one`
          : `only ${one.oneLost} of ${one.asked} pairs of A and AAAA from one port lost one, or another finding explains the losses`,
      );
    const theirs = lossesOfPairs(claims.open, halves);
    const rest = claims.open.length - theirs.length;
    const singles = observed.total.asked - 2 * one.asked;
    const second = one.oneLost === 0 ? 0 : one.secondLost / one.oneLost;
    const expected = one.oneLost / (2 * one.asked);
    const onlyPairs =
      rest <= PAIR_REST.ofLosses * theirs.length &&
      (singles < PAIR_REST.singles || rest <= PAIR_REST.ofExpected * expected * singles);
    if (!onlyPairs) return excluded('queries are lost alone as often as in pairs');
    // By then, the first one has its entry.
    if (second < SECOND_OF_PAIR)
      return excluded('the first query of a pair is lost as often as the second');
    claims.take(theirs);
    const immune = two.asked >= PAIR_IMMUNE.pairs && two.oneLost <= PAIR_IMMUNE.lost * two.asked;
    return {
      severity:
        !isFew && (halves.length >= MANY_LOST_HALVES || halves.length >= FELT_SHARE * one.asked)
          ? 'critical'
          : 'warning',
      confidence:
        (failed ?? 0) > 0 ? 0.97 : isFew ? 0.55 : immune || halves.length >= SURE_PAIRS ? 0.9 : 0.8,
      seen: [
        `${share(one.oneLost, one.asked)} pairs of A and AAAA queries from one port lost one of the two, and in ${percent(one.secondLost, one.oneLost)} of these it was the second. The repeated query was answered.`,
        isFew && 'Two losses may be chance, but no other query was lost.',
        immune && `None of the ${two.asked} pairs sent from two ports (as in Go) is affected.`,
        (failed ?? 0) > 0 &&
          `Connection tracking failed to insert ${failed} entries (insert_failed).`,
      ],
      why: 'Both packets reach the translation of the Service’s address before either has its entry in connection tracking. The second insertion fails, and that packet is dropped. The program waits 5 s (musl 2.5 s) and retries. Kernels since 2020 resolve the clash instead (counted by clash_resolve), so with newer kernels, something else drops the second packet.',
      fix: [
        'Use a node-local cache. Queries to it are not translated, so there is no race.',
        'Upgrade the nodes’ kernels.',
        'For glibc pods, set single-request-reopen in dnsConfig options. It has no effect in Alpine images (musl).',
      ],
      prove:
        'on the nodes, conntrack -S | grep -o "insert_failed=[0-9]*" rises with the lost queries; uname -r shows the kernel',
      disproved:
        'insert_failed does not rise while pairs lose one query (clash_resolve may rise, which is harmless)',
      exchanges: halves,
    };
  },
  inCluster({ answers, kernel, proxyMode }) {
    if (answers === null) return notAsked;
    const result = answers.checks.get('pairs');
    if (result === undefined || result.state === 'unknown')
      return unknown('the Service could not be queried');
    const lost = result.observations.filter(({ text }) => text.includes('two queries was lost'));
    const failed = kernel === null ? 0 : kernel[1].insertFailed - kernel[0].insertFailed;
    if (lost.length === 0)
      return failed > 0
        ? unknown(`no pair was lost, but this machine’s insert_failed grew by ${failed}`)
        : excluded('A and AAAA queries sent together are both answered');
    return {
      severity: 'critical',
      confidence: failed > 0 ? 0.95 : 0.7,
      seen: [
        ...lost.map(({ target, text }) => `${target}: ${text}.`),
        failed > 0 && `This machine’s insert_failed grew by ${failed} during this time.`,
        proxyMode !== null && `kube-proxy’s mode is ${proxyMode}.`,
      ],
      affected: ['pods with glibc or musl that query the Service’s address'],
      why: 'Both packets reach the translation of the Service’s address before either has its entry in connection tracking, and one of them is dropped.',
      fix: [
        'Run a cache on each node. Queries to it are not translated, so there is no race.',
        'For glibc, set the dnsConfig option single-request-reopen. It has no effect with musl.',
      ],
      prove:
        'on the nodes, conntrack -S | grep -o "insert_failed=[0-9]*" shows a higher number each time',
      disproved: 'insert_failed does not rise while lookups take 5 s',
    };
  },
};

/**
 * The lost halves and their repeats. Losses outside pairs have another cause, since a single query has nothing to race
 * with.
 */
function lossesOfPairs(
  open: readonly SeenExchange[],
  halves: readonly SeenExchange[],
): readonly SeenExchange[] {
  const keys = new Set(halves.map(({ client, name }) => `${client.address} ${name}`));
  const lostHalves = new Set(halves);
  return open.filter(
    (loss) =>
      lostHalves.has(loss) || (loss.attempt > 1 && keys.has(`${loss.client.address} ${loss.name}`)),
  );
}
