/** An upstream that does not do EDNS or TCP. */
import { shortcomingOf } from '../../lint/live/upstreams.ts';
import { serverText } from '../../probe/probe-queries.ts';
import { type FindingKind, excluded, noUpstreams } from './finding.ts';

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
    return {
      severity: 'warning',
      confidence: 0.85,
      seen: found.map(({ to, zone, what, why }) =>
        what === 'no-tcp'
          ? `A query over TCP to ${to} (for ${zone}) failed: ${why}.`
          : `${to} (for ${zone}) answers without EDNS, but a query with EDNS failed: ${why}.`,
      ),
      affected: found.map(({ to }) => `upstream ${to}`),
      why: 'Answers larger than 512 bytes need TCP, or EDNS if they still fit into the size that it announces. Names with many addresses or long texts therefore fail, while others do not.',
      fix: [
        'Allow TCP port 53 to the upstream.',
        'If a firewall inspects DNS, make sure that it supports EDNS (RFC 6891).',
      ],
      prove: `run ndots query . NS @${found[0]!.to} +tcp`,
      disproved: 'the query is answered on a node with a DNS pod',
    };
  },
};
