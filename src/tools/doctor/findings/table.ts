/**
 * All kinds of findings, one line each, in the order in which captures are judged: specific ones
 * first, so that general ones explain only the rest.
 */
import { autoscalerAtMost } from './autoscaler-at-most.ts';
import { clusterNamesUpstream } from './cluster-names-upstream.ts';
import { hardCodedDomain } from './hard-coded-domain.ts';
import { hiddenUpstream } from './hidden-upstream.ts';
import { idleConnections } from './idle-connections.ts';
import { unreachableBackend } from './unreachable-backend.ts';
import { ipv6Only } from './ipv6-only.ts';
import { killedForMemory } from './killed-for-memory.ts';
import { coldStart, flaws, lossyRollouts } from './linter-errors.ts';
import { nodeCaches } from './node-caches.ts';
import { oneNode } from './one-node.ts';
import { panics } from './panics.ts';
import { podsNotReady } from './pods-not-ready.ts';
import { poorUpstream } from './poor-upstream.ts';
import { serviceEndpoints } from './service-endpoints.ts';
import { shrinking } from './shrinking.ts';
import { silentUpstream } from './silent-upstream.ts';
import { rejectedUpdates } from './rejected-updates.ts';
import { reloads } from './unequal-configurations.ts';
import { absentNames } from './absent-names.ts';
import { addressConflict } from './address-conflict.ts';
import { askedAgain } from './asked-again.ts';
import { brokenDelegation } from './broken-delegation.ts';
import { burstLimit } from './burst-limit.ts';
import { changedCase } from './changed-case.ts';
import { clusterServfail } from './cluster-servfail.ts';
import { serverFails } from './servfail.ts';
import { cutAlone } from './cut-alone.ts';
import { addressesDiffer } from './differing-addresses.ts';
import { cutOffCache } from './cut-off-cache.ts';
import { cutForATime } from './cut-for-a-time.ts';
import { damagedQueries } from './damaged-queries.ts';
import { danglingAlias } from './dangling-alias.ts';
import { deadBackend } from './dead-backend.ts';
import { deadFlow, staleFlow } from './stale-flow.ts';
import { deadNat64 } from './dead-nat64.ts';
import { droppedAaaa } from './dropped-aaaa.ts';
import { droppedCookies } from './dropped-cookies.ts';
import { droppedEdns } from './dropped-edns.ts';
import { droppedName } from './dropped-name.ts';
import { droppedPorts } from './dropped-ports.ts';
import { failedConnections } from './failed-connections.ts';
import { failedValidation } from './failed-validation.ts';
import { failingType } from './failing-type.ts';
import { familiesDiffer } from './families-differ.ts';
import { expiredZone } from './expired-zone.ts';
import { externalTarget } from './external-target.ts';
import { filledLimit } from './filled-limit.ts';
import { foreignResolver } from './foreign-resolver.ts';
import { forgedReplies } from './forged-replies.ts';
import type { FindingKind } from './finding.ts';
import { forwardingLoop } from './forwarding-loop.ts';
import { fewThreads } from './few-threads.ts';
import { goneName } from './gone-name.ts';
import { grpcLookups } from './grpc-lookups.ts';
import { lameDelegation } from './lame-delegation.ts';
import { largeUpstreamReplies } from './large-upstream-replies.ts';
import { loggedTroubles } from './logged-troubles.ts';
import { madeUpNames } from './made-up-names.ts';
import { misfitReplies } from './misfit-replies.ts';
import { missingA } from './missing-a.ts';
import { missingCache } from './missing-cache.ts';
import { missingFragments } from './missing-fragments.ts';
import { missingNeighbour } from './missing-neighbour.ts';
import { multicastLookups } from './multicast-lookups.ts';
import { namesWithoutAddresses } from './names-without-addresses.ts';
import { neverFound } from './never-found.ts';
import { newFlowsDropped } from './new-flows-dropped.ts';
import { newName } from './new-name.ts';
import { missingTarget } from './missing-target.ts';
import { noSearchList } from './no-search-list.ts';
import { missingSearchDomain } from './missing-search-domain.ts';
import { nodeCacheDark } from './node-cache-dark.ts';
import { noPortsLeft } from './no-ports-left.ts';
import { notDns } from './not-dns.ts';
import { oneReply } from './one-reply.ts';
import { otherDns } from './other-dns.ts';
import { outage } from './outage.ts';
import { overload } from './overload.ts';
import { packetCap } from './packet-cap.ts';
import { pairRace } from './pair-race.ts';
import { privateAndPublic } from './private-and-public.ts';
import { privateReverse } from './private-reverse.ts';
import { parkedDomain } from './parked-domain.ts';
import { partialDns64 } from './partial-dns64.ts';
import { policyCut, prohibited } from './policy-cut.ts';
import { raisedTtl } from './raised-ttl.ts';
import { lossyUpstream } from './lossy-upstream.ts';
import { randomLoss } from './random-loss.ts';
import { refused } from './refused.ts';
import { refusedRate } from './refused-rate.ts';
import {
  closedEndpoint,
  closedProxy,
  closedUpstream,
  endedProcesses,
  nodeCacheEnded,
  noEndpoints,
} from './rejected-queries.ts';
import {
  hiddenServersDiffer,
  replicasDiffer,
  viewsDiffer,
  zoneVersions,
} from './differing-servers.ts';
import { repeatedQuestion } from './repeated-question.ts';
import { responseLimit } from './response-limit.ts';
import { reverseLookups } from './reverse-lookups.ts';
import { sameAddress } from './same-address.ts';
import { searchDomainFails } from './search-domain-fails.ts';
import { searchStops } from './search-stops.ts';
import { searchWaste } from './search-waste.ts';
import { serviceSilent } from './service-silent.ts';
import { shadowedName } from './shadowed-name.ts';
import { shortPatience } from './short-patience.ts';
import { shortTarget } from './short-target.ts';
import { silentSockets } from './silent-sockets.ts';
import { silentZone } from './silent-zone.ts';
import { silentServer } from './silent-server.ts';
import { sinkhole } from './sinkhole.ts';
import { slowPath } from './slow-path.ts';
import { slowSearchDomain } from './slow-search-domain.ts';
import { slowServer } from './slow-server.ts';
import { splitHorizon } from './split-horizon.ts';
import { longDenial } from './long-denial.ts';
import { longAskedAgain } from './long-asked-again.ts';
import { lowNdots } from './low-ndots.ts';
import { staleAnswers } from './stale-answers.ts';
import { statedReasons } from './stated-reasons.ts';
import { repliesElsewhere, strayReplies } from './stray-replies.ts';
import { stuckServfail } from './stuck-servfail.ts';
import { strippedAnswers } from './stripped-answers.ts';
import { suddenAddress } from './sudden-address.ts';
import { suddenNegatives } from './sudden-negatives.ts';
import { tableFull } from './table-full.ts';
import { tcpBlocked } from './tcp-blocked.ts';
import { udpBlocked } from './udp-blocked.ts';
import { unheardUpstream } from './unheard-upstream.ts';
import { uncachedName } from './uncached-name.ts';
import { unsignedZone } from './unsigned-zone.ts';
import { unseenEndpoint } from './unseen-endpoint.ts';
import { lostMasquerade, untranslatedService } from './untranslated-service.ts';
import { unusableReplies } from './unusable-replies.ts';
import { virtualAddress } from './virtual-address.ts';
import { waitingLimit } from './waiting-limit.ts';
import { wildcardDomain } from './wildcard-domain.ts';
import { wrongClusterDomain } from './wrong-cluster-domain.ts';
import { wrongSignatureTimes } from './wrong-signature-times.ts';
import { wrongNamespace } from './wrong-namespace.ts';
import { wrongAaaa } from './wrong-aaaa.ts';

/** All kinds. Of findings that are equally grave and sure, the first comes first. */
export const findingKinds: readonly FindingKind[] = [
  podsNotReady,
  killedForMemory,
  serviceEndpoints,
  madeUpNames,
  multicastLookups,
  idleConnections,
  unreachableBackend,
  tcpBlocked,
  missingFragments,
  longAskedAgain,
  repliesElsewhere,
  strayReplies,
  misfitReplies,
  addressConflict,
  missingNeighbour,
  prohibited,
  forwardingLoop,
  nodeCacheDark,
  closedProxy,
  nodeCacheEnded,
  noEndpoints,
  closedEndpoint,
  closedUpstream,
  endedProcesses,
  udpBlocked,
  newFlowsDropped,
  noPortsLeft,
  damagedQueries,
  cutAlone,
  droppedCookies,
  silentZone,
  untranslatedService,
  lostMasquerade,
  serviceSilent,
  cutOffCache,
  shortTarget,
  externalTarget,
  filledLimit,
  cutForATime,
  deadBackend,
  expiredZone,
  brokenDelegation,
  silentServer,
  responseLimit,
  packetCap,
  staleFlow,
  deadFlow,
  policyCut,
  overload,
  outage,
  searchDomainFails,
  slowSearchDomain,
  searchStops,
  privateReverse,
  droppedAaaa,
  failingType,
  droppedEdns,
  droppedName,
  droppedPorts,
  oneReply,
  tableFull,
  slowPath,
  shortPatience,
  lossyUpstream,
  hiddenUpstream,
  slowServer,
  notDns,
  deadNat64,
  virtualAddress,
  shadowedName,
  failedConnections,
  pairRace,
  silentSockets,
  unseenEndpoint,
  randomLoss,
  hardCodedDomain,
  clusterNamesUpstream,
  wrongClusterDomain,
  missingSearchDomain,
  noSearchList,
  lowNdots,
  foreignResolver,
  wrongNamespace,
  strippedAnswers,
  lameDelegation,
  rejectedUpdates,
  ...unusableReplies,
  danglingAlias,
  missingTarget,
  failedValidation,
  wrongSignatureTimes,
  unsignedZone,
  ...statedReasons,
  suddenNegatives,
  forgedReplies,
  suddenAddress,
  parkedDomain,
  wildcardDomain,
  partialDns64,
  sinkhole,
  sameAddress,
  otherDns,
  zoneVersions,
  replicasDiffer,
  viewsDiffer,
  splitHorizon,
  privateAndPublic,
  raisedTtl,
  addressesDiffer,
  wrongAaaa,
  missingA,
  hiddenServersDiffer,
  familiesDiffer,
  uncachedName,
  newName,
  longDenial,
  goneName,
  largeUpstreamReplies,
  changedCase,
  staleAnswers,
  waitingLimit,
  burstLimit,
  clusterServfail,
  missingCache,
  stuckServfail,
  serverFails,
  refusedRate,
  refused,
  unheardUpstream,
  askedAgain,
  ipv6Only,
  grpcLookups,
  namesWithoutAddresses,
  absentNames,
  neverFound,
  fewThreads,
  searchWaste,
  reverseLookups,
  repeatedQuestion,
  ...loggedTroubles,
  silentUpstream,
  poorUpstream,
  flaws,
  reloads,
  coldStart,
  lossyRollouts,
  panics,
  nodeCaches,
  oneNode,
  autoscalerAtMost,
  shrinking,
];
