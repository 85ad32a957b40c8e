/** DNS64 that only some of the servers behind an address do. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isWellKnown, synthesisOf, type Synthesis } from '../observe/dns64.ts';
import type { Observations } from '../observe/observations.ts';
import { isServer, upstreams } from '../observe/roles.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_PREFIX_NAMES } from '../thresholds/answers.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** AAAA answers for the same names alternate between created addresses and none. */
export const partialDns64: FindingKind = {
  code: 'ND8020',
  title: 'Only some DNS servers create IPv6 addresses for IPv4-only names (DNS64)',
  name: 'DNS64 at only some of the servers',
  inCapture(observed, claims) {
    const aaaa = observed.names.list.filter(
      ({ type, outcomes }) => type === TYPE.AAAA && outcomes.found > 0,
    );
    if (aaaa.length === 0) return unknown('no answer contained an IPv6 address');
    const mixed = aaaa.flatMap((view) => synthesisOf(view, observed) ?? []).filter(alternates);
    const found = [...Map.groupBy(mixed, ({ prefix }) => prefix)].find(
      ([prefix, all]) =>
        sumOf(all, 'found', serversOf(all, observed)) >= MIN_CASES &&
        sumOf(all, 'nodata', serversOf(all, observed)) >= MIN_CASES &&
        // The owner of a single name may choose such an address.
        (isWellKnown(prefix) || new Set(all.map(({ name }) => name)).size >= MIN_PREFIX_NAMES),
    );
    if (found === undefined)
      return excluded('no name alternates between an address that DNS64 created and none');
    const [prefix, all] = found as [string, [Synthesis, ...Synthesis[]]];
    const names = [...new Set(all.map(({ name }) => name))];
    const servers = serversOf(all, observed);
    const sumAt = (server: string, what: 'found' | 'nodata'): number => sumOf(all, what, [server]);
    const made = sumOf(all, 'found', servers);
    const empty = sumOf(all, 'nodata', servers);
    const making = servers.filter((server) => sumAt(server, 'nodata') === 0);
    const without = servers.filter((server) => sumAt(server, 'found') === 0);
    const isByServer = making.length > 0 && without.length > 0;
    const clients = [...new Set(all.flatMap(({ view }) => view.lastClients))];
    const pods = clients.filter((client) => !isServer(observed, client));
    const theirs = pods.length > 0 ? pods : clients;
    for (const name of names) claims.names.add(name);
    const [{ name, address, ipv4 }] = all;
    return {
      severity: 'critical',
      confidence: isByServer ? 0.95 : 0.9,
      seen: [
        sentence(
          `AAAA queries for the same names alternately got an address in ${prefix} (${made} times) and an empty answer (NODATA, ${empty} times): ${listed(names)}`,
        ),
        `${address} contains the IPv4 address ${ipv4}, so a server created it for ${name}, which has no IPv6 address.`,
        isByServer
          ? `${listed(making)} always created addresses, and ${listed(without)} never did.`
          : `Some of the servers behind ${listed(servers)} create these addresses and others do not, but the capture does not show which.`,
        sentence(`The queries came from ${listed(theirs)}`),
      ],
      why: 'DNS64 lets IPv6-only pods reach names that have only IPv4 addresses. A server without it returns an empty AAAA answer, and the pod is left with an IPv4 address that it cannot reach. Whether a lookup works depends on the server that answers it. Names with their own IPv6 address and cluster names are not affected.',
      fix: [
        isByServer
          ? `Give ${listed(without)} the same dns64 configuration as ${listed(making)} (dns64 ${prefix} in the Corefile), or restart it if it runs an older one.`
          : `Query each DNS pod as shown below, and give all of them the same dns64 configuration (dns64 ${prefix} in the Corefile). Restart pods that run an older one.`,
        'If the upstreams do DNS64, forward only to those that do, or let CoreDNS do it for all of them.',
      ],
      prove: `run ndots query ${name} AAAA @POD for each DNS pod; some return ${address}, others no address`,
      disproved: 'each DNS pod always gives the same answer',
      affected: theirs,
    };
  },
};

/** True if the name had an address before and after an empty answer, or the reverse. */
function alternates({ view }: Synthesis): boolean {
  const { outcomes, firstFoundMs, lastFoundMs, firstNegativeMs, lastNegativeMs } = view;
  return outcomes.nodata > 0 && firstFoundMs < lastNegativeMs && firstNegativeMs < lastFoundMs;
}

/** The queried servers, without upstreams: a server that does DNS64 itself queries upstreams that do not. */
function serversOf(all: readonly Synthesis[], observed: Observations): readonly string[] {
  const asked = [...serversOfNames(all.map(({ view }) => view))];
  const ups = upstreams(observed);
  const own = asked.filter((server) => !ups.has(server));
  return own.length > 0 ? own : asked;
}

function sumOf(
  all: readonly Synthesis[],
  what: 'found' | 'nodata',
  servers: readonly string[],
): number {
  return all.reduce(
    (sum, { view }) =>
      servers.reduce((part, server) => part + (view.servers.get(server)?.[what] ?? 0), sum),
    0,
  );
}
