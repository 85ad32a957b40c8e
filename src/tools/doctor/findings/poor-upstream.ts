/** An upstream that does not do EDNS or TCP. */
import { shortcomingOf } from '../../lint/live/upstreams.ts';
import { serverText } from '../../probe/probe-queries.ts';
import { type FindingKind, excluded, clusterFinding, noUpstreams } from './finding.ts';

/** An upstream that does not do EDNS or TCP. */
export const poorUpstream: FindingKind = {
  code: 'ND4009',
  title: 'A server does not answer queries over TCP or with EDNS',
  name: 'upstream servers without TCP or EDNS',
  inCluster({ upstreams }) {
    if (upstreams === null || upstreams.length === 0) return noUpstreams;
    const found = upstreams.flatMap(({ replies, zone }) =>
      replies.flatMap((each) => {
        const what = shortcomingOf(each);
        return what === 'no-tcp' || what === 'no-edns'
          ? [
              {
                to: serverText(each.server),
                zone,
                what,
                why: (what === 'no-tcp' ? each.tcp : each.udp).failure,
              },
            ]
          : [];
      }),
    );
    if (found.length === 0)
      return excluded('upstreams that answer also do so over TCP and with EDNS');
    return clusterFinding(this, {
      severity: 'warning',
      confidence: 0.85,
      seen: found.map(({ to, zone, what, why }) =>
        what === 'no-tcp'
          ? `${to} (for ${zone}) over TCP: ${why}.`
          : `${to} (for ${zone}) answers without EDNS, and with it: ${why}.`,
      ),
      affected: found.map(({ to }) => `upstream ${to}`),
      why: 'Answers that do not fit into one packet arrive whole only over TCP, or with EDNS up to its size. Names with many addresses or long texts then fail, while others do not.',
      fix: [
        'Allow TCP port 53 to the upstream.',
        'If a firewall inspects DNS, make sure that it supports EDNS (RFC 6891).',
      ],
      prove: `ndots query . NS @${found[0]!.to} +tcp`,
      disproved: 'the query is answered from a node with a DNS pod',
    });
  },
};
