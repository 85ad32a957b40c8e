/** A slow network path, which delays DNS like all other traffic. */
import { isProven, type SlowPath } from '../observe/path-times.ts';
import type { ServerView } from '../observe/server-view.ts';
import { listed, share, took } from '../texts.ts';
import { LATE_MS, MOST, SLOW_QUANTILE } from '../thresholds/evidence.ts';
import { LATE_QUANTILE, MIN_TIMED_REPLIES } from '../thresholds/lateness.ts';
import { SLOW_PATH } from '../thresholds/transport.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

interface FarServer {
  readonly view: ServerView;
  readonly path: SlowPath;
}

/** Replies are late because of the network path, as TCP handshakes or a capture at the server show. */
export const slowPath: FindingKind = {
  code: 'ND3026',
  title: 'The network path to the name server is slow, not the server',
  name: 'a slow network path',
  inCapture(observed, claims) {
    const enough = observed.servers.list.filter(
      ({ address, outcomes }) =>
        outcomes.asked - outcomes.lost >= MIN_TIMED_REPLIES && !claims.late.has(address),
    );
    if (enough.length === 0)
      return unknown('too few replies, or another finding explains the delay');
    const far = enough.flatMap((view): readonly FarServer[] => {
      const path = observed.pathTimes.of(view.address);
      return path !== null && isProven(path) ? [{ view, path }] : [];
    });
    if (far.length === 0)
      return excluded('fast replies, or fast TCP connections, show that the path is not slow');
    for (const { view } of far) claims.late.add(view.address);
    const felt = far.filter(
      ({ view }) =>
        view.quantile(LATE_QUANTILE) >= LATE_MS / 2 || view.quantile(SLOW_QUANTILE) >= LATE_MS,
    );
    if (felt.length === 0)
      return excluded('the path to the servers is long, but not long enough to be noticed');
    const { path } = felt[0]!;
    const addresses = listed(felt.map(({ view }) => view.address));
    const clients = [...new Set(felt.flatMap(({ view }) => [...view.clients]))];
    return {
      severity: observed.slowLookups > 0 ? 'warning' : 'info',
      confidence: 0.9,
      seen: [
        `No reply from ${addresses} took less than ${took(path.fastestMs)}, and half of them took less than ${took(path.usualMs)}. All names take (nearly) the same time.`,
        path.handshakes >= SLOW_PATH.handshakes &&
          `TCP handshakes by the same clients, which do not depend on DNS, took ${took(path.handshakeMs)} (the median of ${path.handshakes}).`,
        path.inside >= SLOW_PATH.replies &&
          path.insideMs <= SLOW_PATH.insideShare * path.usualMs &&
          `At the server, the replies left ${took(path.insideMs)} after their queries had arrived (the median of ${path.inside}).`,
        `${share(observed.slowLookups, observed.lookups)} lookups took a second or more, because a search path turns one lookup into several round trips.`,
      ],
      why: `A round trip to ${addresses} takes ${took(path.usualMs)}, whether or not the packets are DNS. The server itself answers at once. The traffic takes a detour (another region or zone, a VPN, a tunnel), or a link on the path is congested.`,
      fix: [
        `Find the slow section with ping -c 5 ${felt[0]!.view.address} and mtr -u -P 53 ${felt[0]!.view.address}, from the node of ${listed(clients)} and from another node.`,
        'Keep DNS close to its clients: run a DNS pod in each zone (topology spread, trafficDistribution: PreferClose), or a cache on each node.',
        'Reduce the round trips per lookup: write names with a trailing dot, or lower ndots.',
      ],
      prove: `from the clients’ node, ping ${felt[0]!.view.address} or connect to any server on that path, which takes just as long`,
      disproved: `ping or TCP handshakes on the same path take much less than ${took(path.fastestMs * MOST)}`,
    };
  },
};
