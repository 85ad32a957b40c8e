/** All findings about a living cluster, and what they come to. */
import { diagnosisOf, type Diagnosis } from '../../diagnosis.ts';
import type { ClusterFacts } from '../facts.ts';
import { aaaaDropped, aaaaFails, familiesDisagree, replicasDisagree } from './answers.ts';
import { others, policies } from './clients.ts';
import { coldStart, flaws, lossyRollouts, reloads } from './configuration.ts';
import { rejects, servfailShare, slowUpstreams, waste } from './counters.ts';
import {
  autoscalerAtMost,
  killedForMemory,
  nodeCaches,
  oneNode,
  panics,
  podsNotReady,
} from './pods.ts';
import type { ClusterRule } from './rule.ts';
import { shrinking } from './shrinking.ts';
import { serviceAddress, serviceEndpoints } from './service.ts';
import { allSilent, apiServerLost, someSilent } from './silent.ts';
import { failingSuffix, walk, wildcard } from './suffixes.ts';
import { largeReplies, raceOfPairs, tcpClosed, trackingFull } from './transport.ts';
import { poorUpstream, silentUpstream, views } from './upstreams.ts';

/** All rules; of findings that are equally grave and sure, the first is told first. */
export const clusterRules: readonly ClusterRule[] = [
  podsNotReady,
  killedForMemory,
  serviceEndpoints,
  allSilent,
  someSilent,
  serviceAddress,
  apiServerLost,
  tcpClosed,
  largeReplies,
  raceOfPairs,
  trackingFull,
  replicasDisagree,
  aaaaDropped,
  aaaaFails,
  familiesDisagree,
  wildcard,
  failingSuffix,
  walk,
  silentUpstream,
  poorUpstream,
  views,
  servfailShare,
  rejects,
  slowUpstreams,
  flaws,
  reloads,
  coldStart,
  lossyRollouts,
  panics,
  nodeCaches,
  oneNode,
  autoscalerAtMost,
  shrinking,
  policies,
  others,
  waste,
];

/** Tries all that are wanted. */
export function diagnoseCluster(
  facts: ClusterFacts,
  wanted: (rule: ClusterRule) => boolean = () => true,
): Diagnosis {
  return diagnosisOf(clusterRules.filter(wanted).map((rule) => [rule, rule.check(facts)] as const));
}
