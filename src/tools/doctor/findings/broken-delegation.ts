/** Zones of which one server refuses, and the others do not answer. */
import { commonZone, isWithin } from '../../../server/wire/within-zone.ts';
import { takeSilence } from '../observe/consequences.ts';
import { isIterative } from '../observe/delegations.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import type { Observations } from '../observe/observations.ts';
import { answered } from '../observe/outcomes.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, type FindingKind } from './finding.ts';

/** A resolver follows a delegation, and no server of the zone is of use: some refuse, the rest is silent. */
export const brokenDelegation: FindingKind = {
  code: 'ND4059',
  title: 'All servers of a zone fail: one refuses, another does not answer',
  name: 'servers that refuse',
  inCapture(observed, claims) {
    const refusals = observed.replyFaults.delegations.refusals.list.filter(
      ({ count }) => count >= MIN_CASES,
    );
    for (const { names } of refusals) {
      const zone = zoneOfNames(observed, [...names]);
      if (zone === null) continue;
      const refusing = refusals.filter((each) => [...each.names].some((name) => names.has(name)));
      const silent = observed.servers.list.filter(
        ({ address, outcomes }) =>
          answered(outcomes) === 0 &&
          claims.openTo(address).filter((loss) => names.has(loss.name) && isIterative(loss))
            .length >= MIN_CASES,
      );
      if (silent.length === 0) continue;
      const views = observed.names.list.filter(({ name }) => isWithin(name, zone));
      // A zone with another server that answers is only slow.
      if (views.some(({ outcomes }) => outcomes.found + outcomes.nodata > 0)) continue;
      const losses = silent.flatMap(({ address }) => claims.openTo(address));
      takeSilence(observed, claims, losses);
      for (const { name } of views) claims.names.add(name);
      const refusers = listed(refusing.map(({ server }) => server));
      const mute = listed(silent.map(({ address }) => address));
      const count = refusing.reduce((sum, each) => sum + each.count, 0);
      const resolvers = new Set(losses.map(({ client }) => client.address));
      const failed = views.reduce((sum, { outcomes }) => sum + outcomes.servfail, 0);
      return {
        title: `All servers of ${zone} fail: ${refusers} ${refusing.length === 1 ? 'refuses' : 'refuse'} (lame delegation), and ${mute} ${silent.length === 1 ? 'does' : 'do'} not answer`,
        subject: zone,
        severity: 'critical',
        confidence: 0.95,
        seen: [
          `${listed([...resolvers])} ${resolvers.size === 1 ? 'follows' : 'follow'} the delegation of ${zone} (queries without RD) and ${resolvers.size === 1 ? 'gets' : 'get'} no answer from any of its servers, for ${listed([...names])}`,
          `${refusers} answered ${count} of these queries with REFUSED, and ${mute} left ${losses.length} without a reply.`,
          failed > 0 &&
            `Clients got SERVFAIL for ${failed} queries for these names, or no reply in time.`,
        ],
        why: `The delegation of ${zone} is broken. ${refusers} does not serve the zone (any more), and ${mute} is down or cannot be reached from here. The resolver tries both again and again, so clients get SERVFAIL late or give up. Other zones are not affected, and no cluster setting can repair this one.`,
        fix: [
          `Tell the owner of ${zone} (or its DNS provider) to load the zone on ${refusers}, to start ${mute}, and to remove servers that no longer serve it from the NS records in the zone and its parent.`,
          `Query both from another network. If ${mute} answers there, look for a firewall or a missing route.`,
          'Until then, add a server block for the zone that forwards to a server that has it, if there is one.',
        ],
        prove: `ndots query ${zone} SOA @${refusing[0]!.server} gets REFUSED, and ndots query ${zone} SOA @${silent[0]!.address} gets no reply`,
        disproved: `one of these servers answers ${zone} SOA authoritatively (with the AA bit)`,
        exchanges: [...losses, ...refusing.flatMap(({ samples }) => samples)],
      };
    }
    return excluded('no zone has servers of which some refuse and the others are silent');
  },
};

/** The zone that is delegated, or that these names have in common; null: they have none. */
function zoneOfNames({ replyFaults }: Observations, names: readonly string[]): string | null {
  const [first] = names as [string];
  const delegation = replyFaults.delegations.of(first);
  if (delegation !== null) return delegation.zone;
  if (names.length === 1) return `${registeredDomainOf(first)}.`;
  const zone = names.reduce(commonZone);
  // Names of several zones have only a top-level domain in common.
  return zone.split('.').length > 2 ? zone : null;
}
