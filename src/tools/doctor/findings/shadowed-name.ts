/** External names that resolve to a Service or host of the same name in a search domain. */
import { isAddressType } from '../../../server/wire/iana.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { endsInTop } from '../observe/registered-names.ts';
import { contactsWithin, isFailing, type ContactSum } from '../observe/contacts-within.ts';
import { listed, sentence, share } from '../texts.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Top-level domains that are also likely namespace names, so only the name as written shows which is meant. */
const OTHER_TOPS =
  /\.(?:[a-z]{2}|dev|app|cloud|tech|online|site|store|shop|xyz|run|tools|systems|network|services|live|page|link|work|team|zone|host|media|games|digital|example)\.$/;
const OF_SERVICE = /^(.+?)\.([^.]+)\.svc\./;

interface Shadow {
  /** The name as written, and the search domain appended to it. */
  readonly stem: string;
  readonly domain: string;
  readonly view: NameView;
  /** The name as written; null if it was not queried. */
  readonly real: NameView | null;
  readonly sum: ContactSum;
}

/** `quay.io` resolves as `quay.io.svc.cluster.local`, because a Service has that name. */
export const shadowedName: FindingKind = {
  code: 'ND2020',
  title: 'An external name resolves to a Service or host of the same name in a search domain',
  name: 'names that a search domain shadows',
  inCapture(observed, claims) {
    if (observed.names.size === 0) return unknown('no name was queried');
    const found = observed.names.list
      .flatMap((view) => shadowsOf(view, observed))
      .toSorted((one, other) => weightOf(other) - weightOf(one));
    const [first] = found;
    if (first === undefined) return excluded('no name below a search domain hides an external one');
    const { stem, domain, view, real, sum } = first;
    const fails = isFailing(sum);
    const [, service, namespace] = OF_SERVICE.exec(view.name) ?? [];
    const what =
      service !== undefined && observed.domains.isOfCluster(view.name)
        ? `the Service ${service} in the namespace ${namespace}`
        : `a host in ${domain.slice(0, -1)}`;
    for (const { sum: each } of found)
      for (const { server } of each.failing) claims.addresses.add(server);
    const askers = view.lastClients;
    const written = stem.slice(0, -1);
    const others = found.flatMap((each) => (each.stem === stem ? [] : each.stem));
    return {
      severity: fails || real !== null ? 'critical' : 'warning',
      confidence: real === null ? (fails ? 0.88 : 0.7) : 0.95,
      seen: [
        `${listed(askers)} got ${listed(view.addresses)} for ${view.name.slice(0, -1)}. That is ${what}, not the external host ${written}.`,
        real === null
          ? `${written} was never queried as written, because the search ended at ${domain.slice(0, -1)}.`
          : sentence(
              `As written, ${stem} resolves to ${listed(real.addresses)} (for ${listed(real.lastClients)})`,
            ),
        fails &&
          sentence(
            `${share(sum.failed, sum.opened)} connections to ${listed(sum.failing.map(({ server, port }) => `${server} port ${port}`))} failed`,
          ),
        others.length > 0 && sentence(`The same applies to ${listed(others)}`),
      ],
      why: `With ndots:5, a name with few dots is first tried with each search domain appended. ${view.name} exists, so the lookup of ${written} ends there, and the program connects to ${what} instead. The connection times out, is refused, or presents the wrong certificate.`,
      fix: [
        `Write the name with a trailing dot (${stem}) where the program allows it, or set ndots:1 in the dnsConfig of these pods.`,
        service !== undefined && observed.domains.isOfCluster(view.name)
          ? `Rename the namespace ${namespace} or the Service ${service}. Namespaces should not have the names of top-level domains.`
          : `Remove the record ${view.name}, or remove ${domain.slice(0, -1)} from the search path.`,
      ],
      prove: `compare ndots trace ${written} --from POD with ndots query ${stem}`,
      disproved: `the program means ${what} when it looks up ${written}`,
      ...(fails ? { counted: sum.clients } : {}),
      affected: fails ? [] : askers,
    };
  },
};

/** The evidence: the real name is known, connections fail. */
function weightOf({ real, sum }: Shadow): number {
  return (real === null ? 0 : 2) + (isFailing(sum) ? 1 : 0);
}

function shadowsOf(view: NameView, observed: Observations): readonly Shadow[] {
  const { name, type, outcomes, addresses } = view;
  if (!isAddressType(type)) return [];
  if (outcomes.found === 0 || addresses.length === 0) return [];
  const domain = observed.domains.domainOf(name);
  if (domain === null) return [];
  const stem = name.slice(0, -domain.length);
  // `redis.cache.svc.` is a name of the cluster.
  if (!stem.slice(0, -1).includes('.') || stem.endsWith('.svc.')) return [];
  const real = observed.names.get(stem, type);
  const isReal = real !== undefined && real.outcomes.found > 0 && real.addresses.length > 0;
  // The same addresses: autopath resolved the whole search path.
  if (isReal && real.addresses.some((each) => addresses.includes(each))) return [];
  // A name that only looks like an external one.
  if (isReal && !endsInTop(stem) && !OTHER_TOPS.test(`.${stem}`)) return [];
  // An ExternalName, or a search path that autopath resolved.
  if (view.sets?.list.some(({ isAlias }) => isAlias) === true) return [];
  // A wildcard, or a resolver that replaces NXDOMAIN.
  const isShared = observed.names.list.some(
    (other) =>
      other.type === type &&
      other.name !== name &&
      other.addresses.some((each) => addresses.includes(each)),
  );
  if (isShared) return [];
  const own = new Set(addresses);
  const sum = contactsWithin(observed, (server) => own.has(server));
  if (!isReal && (!endsInTop(stem) || sum.accepted > 0)) return [];
  return [{ ...{ stem, domain, view, sum }, real: isReal ? real : null }];
}
