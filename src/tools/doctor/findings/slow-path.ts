/** A slow network path, which delays DNS as it delays everything else. */
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

/** Replies are late because packets travel for so long, which TCP handshakes or a capture at the server show. */
export const slowPath: FindingKind = {
  code: 'ND3026',
  title: 'The network path to the name server is slow, not the server',
  name: 'a slow network path',
  inCapture(observed, claims) {
    const enough = observed.servers.list.filter(
      ({ address, outcomes }) =>
        outcomes.asked - outcomes.lost >= MIN_TIMED_REPLIES && !claims.late.has(address),
    );
    if (enough.length === 0) return unknown('too few replies, or their lateness is explained');
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
      code: this.code,
      title: this.title,
      severity: observed.slowLookups > 0 ? 'warning' : 'info',
      confidence: 0.9,
      seen: [
        `No reply from ${addresses} took less than ${took(path.fastestMs)}, and half of them took less than ${took(path.usualMs)}: all names take (nearly) the same time.`,
        ...(path.handshakes >= SLOW_PATH.handshakes
          ? [
              `TCP handshakes of the same clients, which do not depend on DNS, took ${took(path.handshakeMs)} (the median of ${path.handshakes}).`,
            ]
          : []),
        ...(path.inside >= SLOW_PATH.replies &&
        path.insideMs <= SLOW_PATH.insideShare * path.usualMs
          ? [
              `Where the queries arrive, their replies left after ${took(path.insideMs)} (the median of ${path.inside}).`,
            ]
          : []),
        `${share(observed.slowLookups, observed.lookups)} lookups took a second or more: a search path makes several round trips of one lookup.`,
      ],
      why: `Each packet travels for ${took(path.usualMs)} to ${addresses} and back, whatever it carries. The server answers at once. The traffic takes a detour (another region or zone, a VPN, a tunnel), or a link on the path is congested.`,
      fix: [
        `Find the stretch that takes the time: ping -c 5 ${felt[0]!.view.address} and mtr -u -P 53 ${felt[0]!.view.address} from the node of ${listed(clients)}, and from another node.`,
        'Keep DNS close to its clients: a DNS pod in each zone (topology spread, trafficDistribution: PreferClose), or a cache on each node.',
        'Fewer round trips for each lookup: names with a trailing dot, or a lower ndots.',
      ],
      prove: `from the clients’ node: ping ${felt[0]!.view.address}, or connect to any server on that path: it takes as long`,
      disproved: `ping or TCP handshakes on the same path take much less than ${took(path.fastestMs * MOST)}`,
      exchanges: [],
    };
  },
};
