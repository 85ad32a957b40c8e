/** Replies from an address that was not asked. */
import type { Observations } from '../observe/observations.ts';
import { isLost, sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { excluded, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { wasAnswered } from '../observe/losses.ts';
import { OVERTAKEN_MS } from '../thresholds/evidence.ts';
import { STRAYS_FEW, STRAYS_LOST, STRAYS_RARE } from '../thresholds/transport.ts';

/** Replies come from another address than was asked, and clients throw them away. */
export const strayReplies: FindingKind = {
  code: 'ND3016',
  title: 'Replies come from another address than was asked, and are discarded',
  name: 'replies from the wrong address',
  inCapture(observed, claims) {
    const seen = observed.strays.filter(isLost);
    const strays = [...seen, ...untranslated(observed)];
    if (
      strays.length < 2 ||
      (strays.length < STRAYS_FEW && strays.length < STRAYS_RARE * observed.total.asked)
    )
      return excluded(
        `${strays.length} of ${observed.total.asked} queries got their reply from another address than was asked`,
      );
    const isOtherPort =
      seen.length > 0 && seen.every(({ stray, server }) => stray!.address === server.address);
    const from = [...new Set(strays.map((each) => answerer(each, isOtherPort)!))];
    const asked = [...new Set(strays.map(({ server }) => server.address))];
    claims.take(strays);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.92,
      seen: [
        ...(seen.length > 0
          ? [
              `${share(seen.length, observed.total.asked)} queries to ${listed(asked)} were answered from ${listed(from)}, ${isOtherPort ? 'another port than' : 'and not from the address that'} they asked.`,
            ]
          : []),
        ...(strays.length > seen.length
          ? [
              `${share(strays.length - seen.length, observed.total.asked)} queries to ${listed(asked)} were taken to ${listed(from)}, whose replies were seen on their way under its own address, and never as replies of the address that was asked: the clients got none.`,
            ]
          : []),
      ],
      why: 'The way back is not translated as the way there was: a proxy of the mesh or the network plugin takes queries over, packets come back past the node that translated them, or a server answers from another of its addresses. A client that asked one address takes no reply from another. Or the replies reach the node of the client and are dropped there before they are translated (the reverse path filter, a rule of the raw table).',
      fix: [
        'Servers with several addresses have to answer from the one that was asked (bind to each; CoreDNS does).',
        'No asymmetric routes: masquerade traffic between nodes, or externalTrafficPolicy and routes that lead back over the same node.',
        'If the replies arrive at the node: sysctl net.ipv4.conf.all.rp_filter (nstat -az TcpExtIPReversePathFilter counts what it drops), and iptables -t raw -S.',
        'Leave port 53 out of the mesh’s interception.',
      ],
      prove: `tcpdump -ni any host ${from[0]!.split(' ')[0]} and ${isOtherPort ? 'udp' : 'port 53'} on the client’s node`,
      disproved: 'the client gets the replies from the address that it asked at its own interface',
      exchanges: strays,
    };
  },
};

/**
 * Lost queries that the pod behind an address answered, where in the same time no reply comes from
 * that address itself.
 */
function untranslated({ losses, servers }: Observations): readonly SeenExchange[] {
  const answered = losses.filter((loss) => loss.stray === null && wasAnswered(loss));
  const byServer = Map.groupBy(answered, ({ server }) => server.address);
  return [...byServer].flatMap(([address, theirs]) => {
    const view = servers.get(address);
    const { fromMs, toMs } = sentSpan(theirs);
    // It may begin, or end, within a second in which others were answered.
    const isPause = view?.pauses.some(
      (pause) => fromMs >= pause.fromMs - OVERTAKEN_MS && toMs <= pause.toMs,
    );
    if (isPause === true && theirs.length >= STRAYS_FEW) return theirs;
    const [from, to] = [Math.floor(fromMs / 1000), Math.floor(toMs / 1000)];
    const meanwhile = view?.history.filter(([at]) => at >= from && at <= to) ?? [];
    const asked = meanwhile.reduce((sum, [, second]) => sum + second.asked, 0);
    const lost = meanwhile.reduce((sum, [, second]) => sum + second.lost, 0);
    return lost >= STRAYS_LOST * asked ? theirs : [];
  });
}

/** The source of the reply. @param withPort with its port, where only that differs */
function answerer({ stray, hops }: SeenExchange, withPort: boolean): string | undefined {
  const peer = stray ?? hops.at(-1)?.server;
  return peer === undefined || !withPort ? peer?.address : `${peer.address} port ${peer.port}`;
}
