/** Names whose CNAME record leads to a name that does not exist. */
import { addressTypes } from '../../../server/wire/iana.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, sentence, share, shownBy } from '../texts.ts';
import { askersText, programs } from '../observe/roles.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** NXDOMAIN with a CNAME in its answer: the name exists, but its target does not. */
export const danglingAlias: FindingKind = {
  code: 'ND4032',
  title: 'A CNAME record points to a name that does not exist (dangling CNAME)',
  name: 'an alias whose target does not exist',
  inCapture(observed, claims) {
    const { replyFaults, names } = observed;
    if (replyFaults.read === 0) return unknown('the capture contains no complete reply');
    const replies = replyFaults.kinds.get('dangling');
    const failing = (replies?.names.list ?? []).filter(
      ({ name, type }) => (names.get(name, type)?.outcomes.found ?? 0) === 0,
    );
    const count = failing.reduce((sum, each) => sum + each.count, 0);
    if (replies === undefined || count < MIN_CASES)
      return excluded(shownBy(count, replyFaults.read));
    const all = [...new Set(failing.map(({ name }) => name))];
    const aliases = [...new Set(failing.map(({ name, target }) => `${name} points to ${target}`))];
    const targets = [...new Set(failing.map(({ target }) => target))];
    const isOneFamily = failing.every(({ name, type }) =>
      addressTypes.some(
        (other) => other !== type && (names.get(name, other)?.outcomes.found ?? 0) > 0,
      ),
    );
    // A DNS server that follows the alias queries the target itself.
    for (const name of [...all, ...targets]) claims.names.add(name);
    const clients = replies.clients.entries.map(([address]) => address);
    const askers = askersText(observed, clients);
    const servers = replies.servers.list.map(({ key }) => key);
    const asked = programs(observed).reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
    return {
      severity: isOneFamily ? 'warning' : 'critical',
      confidence: 0.94,
      seen: [
        `${share(count, asked)} queries got NXDOMAIN after a CNAME record: ${listed(aliases)}`,
        `${all.length === 1 ? 'This name was' : 'These names were'} never found. The replies came from ${listed(servers)} and went to ${askers}.`,
      ],
      why: 'The name itself exists, because its zone has the CNAME record. The target does not: a CDN distribution, load balancer, bucket or service was deleted or renamed, and the alias was left behind. Every resolver tries the rest of the search path and then reports "no such host". Anyone who can create the target takes over the name.',
      fix: [
        sentence(
          `Delete the CNAME record, or point it at a name that exists. Its target is now ${listed(targets)}`,
        ),
        'If the target was created only moments ago, wait until its zone’s negative TTL has passed (see the SOA record in the reply).',
        'If the name is an ExternalName Service, correct spec.externalName.',
      ],
      prove: `ndots query ${targets[0]!} @${servers[0]!} returns NXDOMAIN without a CNAME`,
      disproved: 'the target resolves when its own zone is queried (a cache has an old answer)',
      hits: count,
      exchanges: [...replies.samples],
    };
  },
};
