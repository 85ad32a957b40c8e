import type { NameView } from '../evidence/name-view.ts';
import type { Observations } from '../evidence/observations.ts';
import { TYPE } from '../../wire/iana.ts';
import { excluded, listed, unknown, type Rule } from './finding.ts';
import { pairsText, serveTheSame } from './losses.ts';
import { isDeniedAnew, isRemembered, isWithoutTtl } from './remembered-denial.ts';

/** Of one name of the search path A exists and AAAA does not, or the other way round, by chance. */
export const familiesDiffer: Rule = {
  code: 'ND8004',
  title: 'A and AAAA of one name disagree whether it exists, now this way, now that',
  name: 'A and AAAA that disagree',
  check(observed, claims) {
    const mixed = observed.names.list.flatMap((a) => {
      if (a.type !== TYPE.A || claims.names.has(a.name)) return [];
      const aaaa = observed.names.get(a.name, TYPE.AAAA);
      if (aaaa === undefined) return [];
      const exists = (view: typeof a): number => view.outcomes.found + view.outcomes.nodata;
      // Each type has been both: a name that came or went changes once.
      const fro = [a, aaaa].some(
        (view) =>
          exists(view) > 0 &&
          view.outcomes.nxdomain > 0 &&
          view.firstNegativeMs < view.lastFoundMs &&
          view.firstFoundMs < view.lastNegativeMs,
      );
      return fro && !isNew(observed, [a, aaaa]) && !byChoice(observed, [a, aaaa]) ? [a.name] : [];
    });
    if (!observed.names.list.some(({ type }) => type === TYPE.AAAA))
      return unknown('AAAA was not asked for');
    if (mixed.length === 0) return excluded(pairsText(observed));
    const keys = new Set(mixed);
    const cluster = mixed.filter((name) => name.includes('.svc.')).length > 0;
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: cluster ? 0.9 : 0.8,
      seen: [
        `${listed(mixed)}: the same question is answered with the name, and with NXDOMAIN, to and fro.`,
      ],
      why: cluster
        ? 'The name is the first one of a search path, which autopath of CoreDNS completes for pods that it knows. A replica that does not know the pod yet (or knows another one with that address) says NXDOMAIN: A and AAAA of one lookup meet different replicas.'
        : 'Behind the address stand servers that do not know the same, and each query meets another one.',
      fix: [
        'autopath @kubernetes: take it out, or replace it by autopath @name (ndots), which needs to know no pods.',
        'Capture on a node: then the DNS pods behind the service are told apart.',
      ],
      prove: `ndots query ${mixed[0]} @POD for each DNS pod, several times`,
      disproved: 'each DNS pod gives the same answer again and again, and all give the same',
      exchanges: observed.affected.flatMap((lookup) =>
        lookup.exchanges.filter(({ name }) => keys.has(name)),
      ),
    };
  },
};

/**
 * Whether caches remember of one that it was missing, and of none that it is missing is learned
 * anew.
 */
function isNew(observed: Observations, views: readonly NameView[]): boolean {
  return (
    views.some((view) => isRemembered(observed, view)) &&
    !views.some((view) => !isWithoutTtl(observed, view) && isDeniedAnew(view))
  );
}

/**
 * Whether each server gives one answer, and those who get another one have chosen another server.
 */
function byChoice(observed: Observations, views: readonly NameView[]): boolean {
  const having = new Set<string>();
  const lacking = new Set<string>();
  for (const { servers } of views)
    for (const [server, { found, nodata, nxdomain }] of servers) {
      if (found + nodata > 0) having.add(server);
      if (nxdomain > 0) lacking.add(server);
    }
  return [...having].every((one) =>
    [...lacking].every((other) => one !== other && !serveTheSame(observed, one, other)),
  );
}
