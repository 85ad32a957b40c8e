/** Names that exist in some replies and not in others, seen at one address. */
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { addressTypes, TYPE } from '../../../server/wire/iana.ts';
import { excluded, listed, sentence, unknown, type Finding, type Rule } from './finding.ts';
import { ofReplicas, ofUpstreams } from './differing-servers.ts';
import { pairsText, serveTheSame } from './losses.ts';
import { isDeniedAnew, isRemembered, isWithoutTtl } from './remembered-denial.ts';

/** So many replies of one kind in a row are not chance, while the other type has both kinds. */
const STEADY = 6;

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
    const both = mixed.filter((name) => !isOfOneType(observed, name));
    if (both.length > 0) return hiddenServers(observed, both);
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
        'If the Corefile has autopath @kubernetes: take it out, or replace it by autopath @name (ndots), which needs to know no pods.',
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

/** Whether one type of the name is denied at times, and the other one always or never. */
function isOfOneType({ names }: Observations, name: string): boolean {
  return addressTypes.some((type) => {
    const { found, nodata, nxdomain } = names.get(name, type)!.outcomes;
    return found + nodata + nxdomain >= STEADY && (found + nodata === 0 || nxdomain === 0);
  });
}

/** Servers behind one address disagree whether names exist, and the capture does not tell them apart. */
function hiddenServers(observed: Observations, names: readonly string[]): Finding {
  const keys = new Set(names);
  const views = observed.names.list.filter(({ name }) => keys.has(name));
  const servers = [...new Set(views.flatMap(({ servers: each }) => [...each].map(([one]) => one)))];
  const count = (kind: 'found' | 'nodata' | 'nxdomain'): number =>
    views.reduce((sum, { outcomes }) => sum + outcomes[kind], 0);
  const isOwn = names.some((name) => observed.domains.isOfCluster(name) || name.includes('.svc.'));
  return {
    ...(isOwn ? ofReplicas : ofUpstreams),
    severity: 'critical',
    confidence: 0.85,
    seen: [
      sentence(
        `${listed(names)}: ${listed(servers)} answered ${count('found') + count('nodata')} times that the name exists and ${count('nxdomain')} times NXDOMAIN, alternating, also for one type`,
      ),
      `The capture does not show which ${isOwn ? 'DNS pod' : 'server'} behind ${listed(servers)} gave which answer: capture on the node.`,
    ],
    prove: isOwn
      ? `ndots query ${names[0]!} @POD for each DNS pod, several times`
      : `ndots query ${names[0]!} @UPSTREAM for each upstream in the Corefile (forward)`,
    exchanges: observed.affected.flatMap(({ exchanges }) =>
      exchanges.filter(({ name }) => keys.has(name)),
    ),
  };
}

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
