/** A dead upstream that the capture does not show, recognised by the time after which CoreDNS queries the next one. */
import { latencyOf } from '../../capture/pair/seen-exchange.ts';
import { externalOnly, lateName, LOGGED, slowLookups } from '../observe/late-replies.ts';
import { answered, isFailure, noOutcomes } from '../observe/outcomes.ts';
import { upstreams } from '../observe/roles.ts';
import { share, took } from '../texts.ts';
import { FELT_MS, MOST, OUTAGE_SHARE } from '../thresholds/evidence.ts';
import { DEAD_UPSTREAM, MIN_TIMED_REPLIES } from '../thresholds/lateness.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** External names are either quick or take 2 s, while cluster names are always quick. */
export const hiddenUpstream: FindingKind = {
  code: 'ND4003',
  title: 'A name server answers slowly',
  name: 'a slow server',
  inCapture(observed, claims) {
    if (upstreams(observed).size > 0) return unknown('the capture shows the upstreams themselves');
    const { ms, marginMs, late: atLeast, least, most, idleMs, resolutionMs } = DEAD_UPSTREAM;
    for (const { address, outcomes } of observed.servers.list) {
      if (answered(outcomes) < MIN_TIMED_REPLIES || claims.late.has(address)) continue;
      const late = slowLookups(observed).flatMap(({ exchanges }) =>
        exchanges.filter(
          (each) =>
            each.server.address === address &&
            (latencyOf(each) ?? 0) >= FELT_MS &&
            !claims.isOfSilence(each) &&
            !claims.names.has(each.name),
        ),
      );
      const waited = late.filter((each) => {
        const waitMs = latencyOf(each)!;
        return waitMs >= ms && waitMs < ms + marginMs && !isFailure(each);
      });
      const outside = externalOnly(address, observed);
      if (waited.length < atLeast || waited.length < MOST * late.length || outside === null)
        continue;
      const asked = observed.names.list
        .filter(({ name }) => !observed.domains.isOfCluster(name))
        .reduce((sum, view) => sum + answered(view.servers.get(address) ?? noOutcomes()), 0);
      if (late.length < least * asked || late.length > most * asked) continue;
      const isMuch = observed.slowLookups >= OUTAGE_SHARE * observed.lookups;
      // The last external query of any client in the capture was some time ago.
      const rested = waited.filter(
        ({ sentMs }) =>
          observed.ways.between(sentMs - idleMs, sentMs - resolutionMs).outside.asked === 0,
      );
      const mayBeIdle = rested.length >= MOST * waited.length;
      const where =
        outside.zone === '' ? 'external names' : `names in ${outside.zone.slice(0, -1)}`;
      claims.late.add(address);
      return {
        title: mayBeIdle
          ? `An upstream, or an idle connection to it, does not answer, so ${where} often take 2 s`
          : `One of the upstreams does not answer, so ${where} often take 2 s`,
        severity: isMuch ? 'critical' : 'warning',
        confidence: 0.85,
        seen: [
          outside.text,
          `${share(waited.length, late.length)} late replies took ${took(ms)} and at most ${took(marginMs)} more, which is the time after which CoreDNS gives up on one upstream and queries another. ${share(asked - late.length, asked)} replies for external names were not late.`,
          mayBeIdle &&
            `Before ${share(rested.length, waited.length)} of these queries, none for an external name was sent for ${took(idleMs)} or longer.`,
          `${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
        ],
        why: `${address || LOGGED} answers cluster names at once, and external names either quickly or after (nearly) exactly 2 s. It forwards to several upstreams, and one of them does not answer, or a firewall drops the packets to it. Each query that goes there first waits 2 s (the read timeout of CoreDNS’s forward). Names in its cache are quick.${mayBeIdle ? ' If forward uses TCP or TLS (force_tcp, tls://), a firewall may instead have dropped idle connections that CoreDNS reuses after a pause.' : ''}`,
        fix: [
          mayBeIdle &&
            'If forward uses TCP or TLS, set its expire to less than the idle timeout of the firewalls on the way.',
          'Query each upstream of the DNS pods (forward in the Corefile, or the nodes’ resolv.conf) from a node with a DNS pod. Remove the one that does not answer, or repair the path to it.',
          'Let forward check its upstreams, so that it skips dead ones. max_fails 0 turns that off.',
          'To see the address of the dead upstream, run ndots doctor -i any on a node with a DNS pod.',
        ],
        prove: `run ndots query ${lateName(address, observed)} @${address || 'SERVER'} twice; the second answer comes from the cache`,
        disproved: 'every upstream answers each query from the DNS pods’ nodes',
        exchanges: waited,
      };
    }
    return excluded(
      'late replies do not all take the time after which CoreDNS queries another upstream',
    );
  },
};
