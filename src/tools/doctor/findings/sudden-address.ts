/** Unrelated names that change to one address at the same time. */
import { changesOf, externalViews, type AnswerChange } from '../observe/changed-answers.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, sentence } from '../texts.ts';
import { MIN_CHANGED_ZONES } from '../thresholds/answers.ts';

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
      const [{ set }] = sudden as [AnswerChange];
      const names = [...new Set(moved.map(({ view }) => view.name))];
      const missing = sudden.filter(({ wasMissing }) => wasMissing).map(({ view }) => view.name);
      const servers = [...new Set(sudden.map(({ set: each }) => each.asked))];
      // New names that have the address are also explained.
      for (const { name, sets } of views)
        if (sets!.list.some(({ hash }) => hash === set.hash)) claims.names.add(name);
      const [address] = set.addresses as [string];
      return {
        severity: 'critical',
        confidence: 0.95,
        seen: [
          sentence(
            `${names.length} names in ${zones.size} domains had different answers until ${clock(fromMs)} but have all resolved to ${address} since then. They include ${listed(names, 6)}`,
          ),
          missing.length > 0 &&
            sentence(
              `Even names that did not exist before now have this address, such as ${listed(missing)}`,
            ),
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
        affected: names,
      };
    }
    return excluded('names do not change to one address at the same time');
  },
};
