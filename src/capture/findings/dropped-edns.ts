/** Queries with EDNS that vanish, while those without it are answered. */
import type { ClientView, Observations } from '../evidence/observations.ts';
import { lossRate } from '../evidence/outcomes.ts';
import type { ServerView } from '../evidence/server-view.ts';
import { excluded, listed, share, unknown, type Rule } from './finding.ts';

/** Of fewer queries with EDNS, and without, nothing can be said. */
const LEAST = 4;
/** So much of the one kind is lost, and no more of the other. */
const LOST = 0.9;
const SPARED = 0.1;

/** What decides whether a query is answered is its OPT record (RFC 6891). */
export const droppedEdns: Rule = {
  code: 'ND4009',
  title: 'A server answers, but not over TCP or not with EDNS',
  name: 'queries with EDNS that are dropped',
  check(observed, claims) {
    const both = observed.servers.list.filter(
      ({ edns, plain }) => edns.asked >= LEAST && plain.asked >= LEAST,
    );
    if (both.length === 0) return unknown('no server was asked both with EDNS and without it');
    const deaf = both.filter((server) => isDeaf(server, observed));
    const losses = deaf.flatMap(({ address }) =>
      claims.openTo(address).filter(({ udpSize }) => udpSize > 0),
    );
    if (deaf.length > 0 && losses.length < LEAST)
      return unknown(
        'those who use EDNS lose what they ask, and it is explained by who they are: have one of them ask without',
      );
    if (deaf.length === 0)
      return excluded(
        `lost are ${share(total(both, 'edns', 'lost'), total(both, 'edns', 'asked'))} queries with EDNS, and ${share(total(both, 'plain', 'lost'), total(both, 'plain', 'asked'))} without`,
      );
    claims.take(losses);
    const addresses = deaf.map(({ address }) => address);
    const isProven = observed.clients.list.some(asksBoth);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: isProven ? (losses.length >= 10 ? 0.93 : 0.85) : 0.75,
      seen: [
        `Of queries with EDNS to ${listed(addresses)}, ${share(total(deaf, 'edns', 'lost'), total(deaf, 'edns', 'asked'))} got no reply; of queries without it, ${share(total(deaf, 'plain', 'lost'), total(deaf, 'plain', 'asked'))}.`,
        ...(isProven
          ? []
          : [
              'No client asks both with EDNS and without it: a rule about just these pods would look the same (ND3004), but they have nothing else in common.',
            ]),
      ],
      why: 'EDNS is an additional record in the query (OPT, RFC 6891) that says, among other things, how large a reply may be. Old servers and firewalls that inspect DNS drop what has it. Who asks with EDNS waits for its time-out; some resolvers then ask once more without.',
      fix: [
        `Have ${listed(addresses)}, or what stands in front of it, take queries with an OPT record (a DNS inspection of a firewall, an old appliance).`,
        'Until then, clients without EDNS: options edns0 and trust-ad out of resolv.conf; in Unbound, server: edns-buffer-size does not help, another upstream does.',
      ],
      prove: `dig +edns=0 ${losses[0]!.name} @${addresses[0]}, then the same with +noedns: only the second is answered`,
      disproved: 'both are answered from the same host',
      exchanges: losses,
    };
  },
};

/** Whether it goes by EDNS, and not by who uses it: some client is answered without, or all who use it lose what they ask so. */
function isDeaf({ address, edns, plain }: ServerView, { clients }: Observations): boolean {
  if (lossRate(edns) < LOST || lossRate(plain) > SPARED) return false;
  const theirs = clients.list.filter(({ servers }) => servers.has(address));
  const users = theirs.filter(({ withEdns }) => withEdns > 0);
  return theirs.some(asksBoth) || (users.length >= 2 && users.length < theirs.length - 1);
}

/** Whether some client is answered by the server without EDNS, and never with it. */
export function isProvenDeaf(server: ServerView, observed: Observations): boolean {
  return (
    isDeaf(server, observed) &&
    observed.clients.list.some((client) => client.servers.has(server.address) && asksBoth(client))
  );
}

function asksBoth({ withEdns, outcomes }: ClientView): boolean {
  return withEdns > 0 && withEdns < outcomes.asked;
}

function total(
  servers: readonly ServerView[],
  kind: 'edns' | 'plain',
  what: 'asked' | 'lost',
): number {
  return servers.reduce((sum, server) => sum + server[kind][what], 0);
}
