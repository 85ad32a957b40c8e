/** Names that nobody answers, told from sockets that nobody answers. */
import { answered } from '../evidence/outcomes.ts';
import type { NameView } from '../evidence/name-view.ts';
import type { Observations } from '../evidence/observations.ts';
import { excluded, listed, unknown, type Rule } from './finding.ts';
import { isSilent } from './sockets.ts';

/** So unlikely is it that chance makes a name look as if nobody answered it. */
const CHANCE_MAX = 0.1;

/** Queries for some names are never answered, all others are. */
export const droppedName: Rule = {
  code: 'ND3010',
  title: 'Queries for certain names get no reply, whoever asks',
  name: 'names that nobody answers',
  check(observed, claims) {
    if (observed.names.size < 2) return unknown('the capture is about one name');
    const open = new Set(claims.open.map(({ type, name }) => `${type} ${name}`));
    const dead = observed.names.list.filter(
      ({ outcomes, name, type }) =>
        outcomes.asked >= 2 && answered(outcomes) === 0 && open.has(`${type} ${name}`),
    );
    if (dead.length === 0)
      return excluded(
        'every name that was asked for more than once was answered, or it is known why not',
      );
    const keys = new Set(dead.map(({ name, type }) => `${type} ${name}`));
    const losses = claims.open.filter(({ type, name }) => keys.has(`${type} ${name}`));
    const answeredNames = observed.names.list.filter(({ outcomes }) => answered(outcomes) > 0);
    // Names by chance: with many losses some name is always lost every time.
    const explains = losses.length >= 0.6 * claims.open.length;
    const repeated = dead.some(({ outcomes }) => outcomes.asked >= 3);
    // All repeats of one socket may go to one dead server behind the address.
    const outside = allOutside(observed);
    if (chanceOf(dead, observed) > CHANCE_MAX && !outside)
      return excluded('names without a reply are those of sockets without a reply');
    if (losses.length < 3 || answeredNames.length === 0 || !explains || !(repeated || outside))
      return excluded('names that get no reply once get one when they are asked again');
    claims.take(losses);
    const names = [...new Set(dead.map(({ name }) => name))];
    const suffix = commonSuffix(names);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.85,
      seen: [
        `${losses.length} queries for ${listed(names)} got no reply, however often they were repeated.`,
        `${answeredNames.length} other names are answered by the same servers.`,
        ...(suffix !== '' && names.length > 1 ? [`All of them end in ${suffix}`] : []),
      ],
      why: 'What depends on the name is decided where names are read: the upstream that is responsible for this zone does not answer (or a filter drops it), and the server in between waits for it for longer than its clients wait.',
      fix: [
        `Look at who is responsible for ${suffix === '' ? 'these names' : suffix}: a forward of its own in the Corefile, a firewall that filters by name, a server of that zone that is down.`,
        'If a search domain of the nodes makes these names, take it out of their resolv.conf (kubelet --resolv-conf): nobody needs them.',
        'Let the server give up sooner than its clients: forward { max_connect_attempts } or a shorter timeout, so that they get SERVFAIL and go on.',
      ],
      prove: `ndots query ${names[0]} @${losses[0]!.server.address}, and of its upstream directly`,
      disproved: 'the same name is answered to another client by the same server',
      exchanges: losses,
    };
  },
};

/** How likely it is that a name is never answered as often as the most dead of these, if it went by the socket alone. */
function chanceOf(dead: readonly NameView[], { flows, names }: Observations): number {
  const silent = flows.list.filter(isSilent).length / Math.max(1, flows.size);
  const tried = names.list.filter(({ sockets }) => sockets >= 2).length;
  const most = dead.reduce((sockets, each) => Math.max(sockets, each.sockets), 0);
  return most < 2 ? 1 : tried * silent ** most;
}

/** Whether no name of outside is answered, and all names of the cluster are. */
function allOutside({ names, domains }: Observations): boolean {
  const outside = names.list.filter(({ name }) => !domains.isOfCluster(name));
  const inside = names.list.filter(({ name }) => domains.isOfCluster(name));
  return (
    outside.length >= 4 &&
    inside.length >= 4 &&
    outside.every(({ outcomes }) => answered(outcomes) === 0) &&
    inside.every(({ outcomes }) => outcomes.lost === 0)
  );
}

/** The last labels that all names have in common; empty = none. */
function commonSuffix(names: readonly string[]): string {
  const [first = [], ...others] = names.map((name) => name.split('.').slice(0, -1).toReversed());
  let length = 0;
  while (length < first.length && others.every((labels) => labels[length] === first[length]))
    length++;
  return length === 0 ? '' : `${first.slice(0, length).toReversed().join('.')}.`;
}
