/** The lab's stories, in the order in which they are listed. */
import type { Story } from './story.ts';
import { snatPorts } from './stories/snat-ports.ts';
import { ipvsExpiry } from './stories/ipvs-expiry.ts';
import { kubeHealthLocalhost } from './stories/kube-health-localhost.ts';
import { etcdRestart } from './stories/etcd-restart.ts';
import { apiRestart } from './stories/api-restart.ts';
import { zoneEmptied } from './stories/zone-emptied.ts';
import { forwardLoop } from './stories/forward-loop.ts';
import { mixedCase } from './stories/mixed-case.ts';
import { autopathStalePod } from './stories/autopath-stale-pod.ts';
import { nodeCacheKilled } from './stories/node-cache-killed.ts';
import { nodeCacheUpgraded } from './stories/node-cache-upgraded.ts';
import { rollout } from './stories/rollout.ts';
import { swap } from './stories/swap.ts';
import { staleConntrack } from './stories/stale-conntrack.ts';
import { tableFull } from './stories/table-full.ts';
import { packetLimit } from './stories/packet-limit.ts';
import { evdnsTruncation } from './stories/evdns-truncation.ts';
import { tcpBlocked } from './stories/tcp-blocked.ts';
import { wildcardSuffix } from './stories/wildcard-suffix.ts';
import { alpineServfail } from './stories/alpine-servfail.ts';
import { lostHalf } from './stories/lost-half.ts';
import { serviceShares } from './stories/service-shares.ts';
import { twelveQueries } from './stories/twelve-queries.ts';

export const stories: readonly Story[] = [
  twelveQueries,
  serviceShares,
  lostHalf,
  alpineServfail,
  wildcardSuffix,
  tcpBlocked,
  evdnsTruncation,
  packetLimit,
  tableFull,
  staleConntrack,
  rollout,
  swap,
  nodeCacheKilled,
  nodeCacheUpgraded,
  autopathStalePod,
  mixedCase,
  forwardLoop,
  zoneEmptied,
  apiRestart,
  etcdRestart,
  kubeHealthLocalhost,
  ipvsExpiry,
  snatPorts,
];

export function findStory(name: string): Story | null {
  return stories.find((story) => story.name === name) ?? null;
}
