/** Names that one server knows, and that the servers which the cluster’s DNS asks deny. */
import type { NameView } from '../evidence/name-view.ts';
import type { Observations } from '../evidence/observations.ts';
import { excluded, listed, sentence, unknown, type Rule } from './finding.ts';
import { serveTheSame, upstreams } from './losses.ts';

/** Fewer replies of either kind are chance. */
const LEAST = 2;

interface Difference {
  readonly view: NameView;
  readonly having: readonly string[];
  readonly lacking: readonly string[];
}

/** A zone has an internal and a public version, and the cluster asks the one without the name. */
export const splitHorizon: Rule = {
  code: 'ND4034',
  title: 'A name exists at one name server, and the server that the cluster asks denies it',
  name: 'two versions of a zone (split horizon)',
  check(observed, claims) {
    const views = observed.names.list.filter(
      ({ name, servers }) =>
        servers.size >= 2 && !isOfCluster(name, observed) && !claims.names.has(name),
    );
    if (views.length === 0) return unknown('no external name was asked of two servers');
    const found = views.flatMap((view) => difference(view, observed) ?? []);
    const [first] = found;
    if (first === undefined) return excluded('servers agree whether external names exist');
    const names = [...new Set(found.map(({ view }) => view.name))];
    for (const name of names) claims.names.add(name);
    const behind = upstreams(observed);
    const { having } = first;
    const upstream = first.lacking.filter((server) => behind.has(server));
    const lacking = upstream.length > 0 ? upstream : first.lacking;
    const zone = observed.replyFaults.zones.get(names[0]!)?.zone ?? '';
    const denied = found.reduce((sum, { view }) => sum + view.outcomes.nxdomain, 0);
    const who = clientsOf(observed, having);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.9,
      seen: [
        sentence(
          `${listed(names)}: ${listed(first.lacking)} said NXDOMAIN, ${denied} times and always; ${listed(having)} has ${names.length === 1 ? 'it' : 'them'}, and never denied ${names.length === 1 ? 'it' : 'them'}`,
        ),
        ...(zone === '' ? [] : [sentence(`The denial comes from the zone ${zone}`)]),
        ...(who.length === 0 ? [] : [`${listed(having)} is asked by ${listed(who)}.`]),
      ],
      why: 'The zone exists twice: an internal version for private names, and a public one. The DNS of the cluster forwards the zone to one of the two, whose NXDOMAIN is final: nobody asks the other. Names that only the other version has do not resolve in pods, and do on nodes or elsewhere.',
      fix: [
        `Add the missing names to the version that ${listed(lacking)} serves.`,
        `Or forward only the private part of the zone there, and the rest to ${having[0]!}: a server block of its own in the Corefile.`,
      ],
      prove: `ndots query ${names[0]!} @${lacking[0]!} and @${having[0]!}`,
      disproved: 'both servers give the same answer when they are asked directly',
      exchanges: observed.affected.flatMap(({ exchanges }) =>
        exchanges.filter(({ name }) => names.includes(name)),
      ),
      affected: names,
    };
  },
};

function difference(view: NameView, observed: Observations): Difference | null {
  // One after the other, the name came or went.
  const isBeside =
    view.firstFoundMs < view.lastNegativeMs && view.firstNegativeMs < view.lastFoundMs;
  if (!isBeside) return null;
  const servers = [...view.servers];
  const having = servers.flatMap(([server, { found, nxdomain }]) =>
    found >= LEAST && nxdomain === 0 ? server : [],
  );
  const lacking = servers.flatMap(([server, { found, nodata, nxdomain }]) =>
    nxdomain >= LEAST && found + nodata === 0 ? server : [],
  );
  // Servers that one client asks in turn are another finding.
  const isInTurn = having.some((one) =>
    lacking.some((other) => serveTheSame(observed, one, other)),
  );
  return having.length === 0 || lacking.length === 0 || isInTurn ? null : { view, having, lacking };
}

function clientsOf({ servers }: Observations, addresses: readonly string[]): readonly string[] {
  return [...new Set(addresses.flatMap((address) => [...(servers.get(address)?.clients ?? [])]))];
}

function isOfCluster(name: string, { domains }: Observations): boolean {
  return domains.isOfCluster(name) || name.includes('.svc.');
}
