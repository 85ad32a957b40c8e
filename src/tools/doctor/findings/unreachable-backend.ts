/** Names that a DNS server gets from another service, to which it cannot connect. */
import { isWithin, commonZone } from '../../../server/wire/within-zone.ts';
import type { Contact } from '../observe/contacts.ts';
import type { Observations } from '../observe/observations.ts';
import { isServer } from '../observe/roles.ts';
import { keysOf, listed, sentence, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { isFailure, wrong } from '../observe/outcomes.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Ports of services from which DNS servers get names. */
const SERVICES: ReadonlyMap<number, string> = new Map([
  [389, 'LDAP'],
  [636, 'LDAP'],
  [853, 'DNS over TLS'],
  [2379, 'etcd'],
  [3306, 'MySQL'],
  [5432, 'PostgreSQL'],
  [6379, 'Redis'],
  [8300, 'Consul'],
  [8500, 'Consul'],
]);
/** Ports of the API server: its absence is another finding (ND5001). */
const OF_API_SERVER: ReadonlySet<number> = new Set([443, 6443]);

/** Names of one zone fail while the server’s connections to a backend are not accepted. */
export const unreachableBackend: FindingKind = {
  code: 'ND4055',
  title: 'Names fail because the DNS server cannot connect to the service that has them',
  name: 'a backend that cannot be reached',
  inCapture(observed, claims) {
    const contacts = observed.contacts
      .at(observed.lastMs)
      .filter((contact) => isUnreached(contact) && askersOf(contact, observed).length > 0);
    if (contacts.length === 0)
      return observed.others.opened === 0
        ? unknown('the capture contains no connections of DNS servers (capture all ports)')
        : excluded('connections of the DNS servers are accepted');
    const failing = observed.names.list.filter(
      ({ name, outcomes }) =>
        outcomes.found + outcomes.nodata + outcomes.nxdomain === 0 &&
        wrong(outcomes) > 0 &&
        !claims.names.has(name),
    );
    const names = keysOf(failing, ({ name }) => name);
    const bad = failing.reduce((sum, { outcomes }) => sum + wrong(outcomes), 0);
    const zone = names.length === 0 ? '.' : names.reduce(commonZone);
    // An upstream over TCP or TLS has all external names.
    const isOutside = zone === '.' && !names.some((name) => observed.domains.isOfCluster(name));
    const isHit = (name: string): boolean =>
      isOutside ? !observed.domains.isOfCluster(name) : isWithin(name, zone);
    const fine = observed.names.list.filter(
      ({ name, outcomes }) => outcomes.found > 0 && !isHit(name),
    );
    const isSpared =
      isOutside &&
      observed.names.list.some(({ name, outcomes }) => outcomes.found > 0 && isHit(name));
    const asked = observed.names.list.reduce(
      (sum, { name, outcomes }) => sum + (isHit(name) ? outcomes.asked : 0),
      0,
    );
    if (bad < MIN_CASES || (zone === '.' && !isOutside) || isSpared || fine.length === 0)
      return excluded('the failures are not those of one zone');
    const hit = isOutside ? 'external names' : `names in ${zone.slice(0, -1)}`;
    const [contact] = contacts.toSorted((one, other) => tries(other) - tries(one));
    const servers = askersOf(contact!, observed);
    const { server, port, opened, repeated } = contact!;
    const service = SERVICES.get(port);
    const called = `${service === undefined ? '' : `${service} at `}${server} port ${port}`;
    const losses = claims.open.filter(({ name }) => names.includes(name));
    claims.take(losses);
    for (const name of names) claims.names.add(name);
    const exchanges = observed.affectedExchanges(
      (each) => isFailure(each) && names.includes(each.name),
    );
    const isRejected = contact!.failures.has('refused') || contact!.failures.has('unreachable');
    return {
      title: `The DNS server cannot connect to ${called}, so ${hit} fail`,
      severity: 'critical',
      confidence: 0.92,
      seen: [
        `${listed(servers)} opened ${opened} TCP ${opened === 1 ? 'connection' : 'connections'} to ${called}, and none was accepted${isRejected ? ' (RST or ICMP came back)' : `: its first packets (SYN) got no reply, ${opened + repeated} in total`}.`,
        sentence(
          `At the same time, ${share(bad, asked)} queries for ${hit} got SERVFAIL or no reply. They are for ${listed(names)}`,
        ),
        `${new Set(fine.map(({ name }) => name)).size} other names were answered.`,
      ],
      why: sentence(
        `The DNS server does not have ${hit} itself. It queries ${called} for them (a plugin such as etcd, or a forwarder over TCP or TLS), and without a connection it waits and then answers SERVFAIL or nothing. ${isRejected ? 'No process listens on that port' : 'The host is down, or a firewall or network policy drops the packets'}`,
      ),
      fix: [
        `Check whether ${called} runs and can be reached from the DNS pods (nc -vz ${server} ${port} on their node; network policies, firewalls, security groups).`,
        `If it has moved, correct its address in the Corefile, in the server block for ${hit}.`,
        'Give the plugin several endpoints, so that one of them may be down.',
      ],
      prove: `nc -vz -w 3 ${server} ${port} from the node of ${servers[0]!}`,
      disproved: 'connections from the DNS pods to that port are accepted',
      exchanges: [...losses, ...exchanges],
    };
  },
};

/** Never accepted, although tried several times. */
function isUnreached(contact: Contact): boolean {
  return contact.accepted === 0 && tries(contact) >= MIN_CASES && !OF_API_SERVER.has(contact.port);
}

/** First packets, repeats included. */
function tries({ opened, repeated }: Contact): number {
  return opened + repeated;
}

/** The DNS servers that open these connections; empty: others open them as well. */
function askersOf({ clients }: Contact, observed: Observations): readonly string[] {
  const all = [...clients.keys()];
  return all.every((client) => isServer(observed, client)) ? all : [];
}
