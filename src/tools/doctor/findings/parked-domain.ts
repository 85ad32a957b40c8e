/** A domain whose names change to one address, as those of an expired one do. */
import { isWithin } from '../../../server/wire/within-zone.ts';
import { changesOf, externalViews, type AnswerChange } from '../observe/changed-answers.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import { failedContacts } from '../observe/failed-contacts.ts';
import { clock, listed, sentence } from '../texts.ts';
import { MIN_CHANGED_NAMES } from '../thresholds/answers.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const parkedDomain: FindingKind = {
  code: 'ND4072',
  title: 'All names in one domain suddenly resolve to the same address',
  name: 'a domain whose names change to one address',
  inCapture(observed, claims) {
    const views = externalViews(observed).filter(({ name }) => !claims.names.has(name));
    if (views.length < MIN_CHANGED_NAMES) return unknown('too few external names were found');
    const all = views.flatMap((view) => changesOf(view));
    const groups = Map.groupBy(
      all,
      ({ view, set }) => `${registeredDomainOf(view.name)} ${set.hash}`,
    );
    for (const changes of groups.values()) {
      const fromMs = Math.min(...changes.map(({ set }) => set.firstMs));
      const sudden = changes.filter(({ beforeMs }) => beforeMs <= fromMs);
      const moved = [
        ...new Set(sudden.flatMap(({ view, wasMissing }) => (wasMissing ? [] : view.name))),
      ];
      const missing = [
        ...new Set(
          sudden.flatMap(({ view, wasMissing }) =>
            wasMissing && view.outcomes.nxdomain > 0 && !moved.includes(view.name) ? view.name : [],
          ),
        ),
      ];
      const [{ set, view: one }] = changes as [AnswerChange, ...AnswerChange[]];
      const [address] = set.addresses as [string];
      const zone = `${registeredDomainOf(one.name)}.`;
      const kept = views.filter(
        ({ name, sets }) =>
          isWithin(name, zone) &&
          sets!.list.some(
            ({ hash, lastMs, ttl }) => hash !== set.hash && lastMs > fromMs + 1000 * ttl,
          ),
      );
      const failed = failedContacts(observed).filter(({ contact }) => contact.server === address);
      // An owner may move all names to one host on purpose, and it then answers.
      if (kept.length > 0 || moved.length < 2 || moved.length + missing.length < MIN_CHANGED_NAMES)
        continue;
      if (missing.length === 0 && failed.length === 0) continue;
      const sources = [...new Set(sudden.map(({ set: each }) => each.asked))];
      for (const { name } of views) if (isWithin(name, zone)) claims.names.add(name);
      claims.addresses.add(address);
      return {
        subject: zone,
        severity: 'critical',
        confidence: missing.length > 0 && failed.length > 0 ? 0.95 : 0.85,
        seen: [
          sentence(
            `${moved.length} names in ${zone} had different answers until ${clock(fromMs)} but have all resolved to ${address} since then: ${listed(moved)}`,
          ),
          missing.length > 0 &&
            sentence(
              `Names that did not exist before now have this address as well, so a wildcard record answers for the whole domain: ${listed(missing)}`,
            ),
          ...failed.slice(0, 1).map(({ text }) => sentence(text)),
          `${listed(sources)} ${sources.length === 1 ? 'gives' : 'give'} this address, with a TTL of ${set.ttl} s. Names in other domains did not change.`,
        ],
        why: `The domain most likely no longer leads to its owner’s name servers. Its registration has expired and the registrar has parked it, or its delegation was changed by mistake or by an attacker. Parking servers answer every name with one address. (In rare cases, the owner has replaced all records with a wildcard.) The cluster’s DNS only passes the answers on.`,
        fix: [
          `Check the registration and the delegation of ${zone} (whois ${zone.slice(0, -1)}; ndots query ${zone} NS). If the registration has expired, renew it. If the name servers are not the owner’s, have the registrar restore them.`,
          `Until then, answer the domain in the cluster with the right addresses (hosts, or a server block for ${zone} that forwards to the owner’s name servers).`,
          `Afterwards, restart or flush the caches, because they keep ${address} for up to ${set.ttl} s.`,
        ],
        prove: `ndots query ${zone} NS, and ndots query a-name-that-cannot-exist.${zone}, which returns ${address}`,
        disproved: `the owner of ${zone} has moved all of its names to ${address} on purpose`,
        affected: [...moved, ...missing],
      };
    }
    return excluded('no domain’s names change to one address together');
  },
};
