/** The stories that the lab knows, in the order in which it lists them. */
import type { Story } from './story.ts';
import { rollout } from './stories/rollout.ts';
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

/** All stories. */
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
];

/** A story by its name; null: there is none. */
export function findStory(name: string): Story | null {
  return stories.find((story) => story.name === name) ?? null;
}
