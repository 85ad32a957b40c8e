/** Unrelated names that change to one address at the same time. */
import { TYPE } from '../../../server/wire/iana.ts';
import type { AnswerSet } from '../observe/answer-sets.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import type { NameView } from '../observe/name-view.ts';
import { failedContacts } from '../observe/failed-contacts.ts';
import type { Observations } from '../observe/observations.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, sentence } from '../texts.ts';
import {
  MIN_CHANGED_NAMES,
  MIN_CHANGED_ZONES,
  MIN_SAME_ANSWERS,
  TTL_ROUNDED_MS,
} from '../thresholds/answers.ts';

/** Names of one domain that change to one address together. */
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
      const [{ set, view: one }] = changes as [Change, ...Change[]];
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
        code: this.code,
        title: this.title,
        subject: zone,
        severity: 'critical',
        confidence: missing.length > 0 && failed.length > 0 ? 0.95 : 0.85,
        seen: [
          sentence(
            `${moved.length} names in ${zone} had different answers until ${clock(fromMs)} but have all resolved to ${address} since then: ${listed(moved)}`,
          ),
          ...(missing.length > 0
            ? [
                sentence(
                  `Names that did not exist before now have this address as well, so a wildcard record answers for the whole domain: ${listed(missing)}`,
                ),
              ]
            : []),
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
        exchanges: [],
        affected: [...moved, ...missing],
      };
    }
    return excluded('no domain’s names change to one address together');
  },
};

interface Change {
  readonly view: NameView;
  readonly set: AnswerSet;
  /** The source still had another answer then, milliseconds since 1970. */
  readonly beforeMs: number;
  readonly wasMissing: boolean;
}

/** From one moment on, a device on the way answers every name with its own address. */
export const suddenAddress: FindingKind = {
  code: 'ND4041',
  title: 'Unrelated names suddenly all resolve to the same address',
  name: 'names that change to one address',
  inCapture(observed, claims) {
    const views = externalViews(observed);
    if (views.length < MIN_CHANGED_ZONES) return unknown('too few external names were found');
    const all = views.flatMap((view) => changesOf(view));
    for (const [, changes] of Map.groupBy(all, ({ set }) => set.hash)) {
      const fromMs = Math.min(...changes.map(({ set }) => set.firstMs));
      const sudden = changes.filter(({ beforeMs }) => beforeMs <= fromMs);
      const moved = sudden.filter(({ wasMissing }) => !wasMissing);
      const zones = new Set(moved.map(({ view }) => registeredDomainOf(view.name)));
      if (zones.size < MIN_CHANGED_ZONES) continue;
      const [{ set }] = sudden as [Change];
      const names = [...new Set(moved.map(({ view }) => view.name))];
      const missing = sudden.filter(({ wasMissing }) => wasMissing).map(({ view }) => view.name);
      const servers = [...new Set(sudden.map(({ set: each }) => each.asked))];
      // New names that have the address are also explained.
      for (const { name, sets } of views)
        if (sets!.list.some(({ hash }) => hash === set.hash)) claims.names.add(name);
      const [address] = set.addresses as [string];
      return {
        code: this.code,
        title: this.title,
        severity: 'critical',
        confidence: 0.95,
        seen: [
          sentence(
            `${names.length} names in ${zones.size} domains had different answers until ${clock(fromMs)} but have all resolved to ${address} since then. They include ${listed(names, 6)}`,
          ),
          ...(missing.length > 0
            ? [
                sentence(
                  `Even names that did not exist before now have this address, such as ${listed(missing)}`,
                ),
              ]
            : []),
          `${listed(servers)} ${servers.length === 1 ? 'gives' : 'give'} this address, with a TTL of ${set.ttl} s.`,
        ],
        why: 'A device between the cluster and the internet answers every name with its own address. It may be the network’s captive portal or login page, a provider, a firewall, or an attacker. Programs connect to the wrong host and get certificate errors.',
        fix: [
          `Determine what ${address} is (curl -sI http://${address}), and whether the network requires a login or payment.`,
          'Forward to another upstream, over TLS (forward . tls://…), so that no device in between can change answers.',
          `Then restart or flush the caches, because they may keep ${address}.`,
        ],
        prove: `ndots query ${names[0]!} @${servers[0]!} returns ${address}, and so does the same for a name that cannot exist`,
        disproved: 'a name that cannot exist gets NXDOMAIN there',
        exchanges: [],
        affected: names,
      };
    }
    return excluded('names do not change to one address at the same time');
  },
};

/** The external names that have addresses. */
function externalViews({ names, domains }: Observations): readonly NameView[] {
  return names.list.filter(
    ({ name, type, sets }) => type === TYPE.A && sets !== null && !domains.isOfCluster(name),
  );
}

/** The sets of one address that replaced another answer for good. */
function changesOf(view: NameView): readonly Change[] {
  const { list } = view.sets!;
  return list.flatMap((set) => {
    if (set.size !== 1) return [];
    const before = list.filter(({ server, hash }) => server === set.server && hash !== set.hash);
    // Whatever comes back later has not changed.
    if (before.some(({ lastMs }) => lastMs > set.firstMs + TTL_ROUNDED_MS)) return [];
    const wasMissing = before.length === 0 && view.lastNegativeMs < set.firstMs;
    if (before.length === 0 ? !wasMissing : set.count < MIN_SAME_ANSWERS) return [];
    // A cache gives the old answer for as long as its TTL lasts.
    const beforeMs = wasMissing
      ? view.lastNegativeMs - 1000 * view.longestTtl
      : Math.max(...before.map(({ lastMs, ttl }) => lastMs - 1000 * ttl));
    return [{ view, set, beforeMs, wasMissing }];
  });
}
