/** Names that a client looks up by multicast, which no DNS server receives. */
import { addressTypes } from '../../../server/wire/iana.ts';
import { MDNS_PORT, type MulticastName } from '../observe/multicast-names.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** `.local` names go to 224.0.0.251 (nss-mdns), single words to 224.0.0.252 (LLMNR). */
export const multicastLookups: FindingKind = {
  code: 'ND2019',
  title:
    'Pods look up names by multicast (mDNS, LLMNR), so the cluster’s DNS never receives the queries',
  name: 'lookups by multicast',
  inCapture(observed) {
    const open = observed.multicast.unanswered;
    if (open.length === 0) return unknown('the capture has no unanswered multicast lookup');
    const alone = open.filter((each) => !isAskedHere(each, observed));
    const failing = triesOf(alone) >= MIN_CASES ? alone : open;
    const tries = triesOf(failing);
    if (tries < MIN_CASES) return excluded('hardly any multicast lookup goes unanswered');
    const goesOn = failing === open;
    const names = [...new Set(failing.map(({ name }) => name))];
    const clients = [...new Set(failing.map(({ client }) => client))];
    const isMdns = failing.some(({ port }) => port === MDNS_PORT);
    const group = isMdns ? '224.0.0.251 (port 5353)' : '224.0.0.252 (port 5355)';
    const elsewhere = (goesOn ? [] : names).flatMap((name) => {
      const found = viewsOf(name, observed).filter(({ outcomes }) => outcomes.found > 0);
      const servers = [...new Set(found.flatMap(({ answeredMs }) => [...answeredMs.keys()]))];
      return servers.length === 0 ? [] : [{ name, servers }];
    });
    return {
      severity: goesOn || !isMdns ? 'warning' : 'critical',
      confidence: elsewhere.length > 0 ? 0.95 : 0.9,
      seen: [
        `${listed(clients)} looked up ${listed(names)} by multicast (${tries} queries to ${group}). Nothing answered${goesOn ? ', and the lookup waited for a reply before it queried a name server' : `, and ${clients.length === 1 ? 'it' : 'they'} sent no DNS query for ${names.length === 1 ? 'this name' : 'these names'}`}`,
        ...elsewhere.map(
          ({ name, servers }) =>
            `Other clients query ${listed(servers)} for ${name} and get an address.`,
        ),
      ],
      why: isMdns
        ? 'The resolver in these pods sends names below .local to Multicast DNS. Either the image has nss-mdns in nsswitch.conf (hosts: files mdns4_minimal [NOTFOUND=return] dns), or it runs avahi or systemd-resolved with MulticastDNS. No host in a pod network answers multicast, and NOTFOUND=return ends the lookup before DNS. The domain .local is reserved for mDNS (RFC 6762), so a company domain below .local conflicts with it.'
        : 'The resolver in these pods sends single-label names by multicast (LLMNR, as systemd-resolved and Windows do). No host in a pod network answers.',
      fix: [
        isMdns
          ? 'Remove mdns from the hosts line in the image’s /etc/nsswitch.conf (hosts: files dns), or remove libnss-mdns. In systemd-resolved, set MulticastDNS=no.'
          : 'Disable LLMNR (LLMNR=no in systemd-resolved), or write the names in full.',
        isMdns && 'In the long run, do not use .local for a private zone.',
      ],
      prove: `in the pod, check the hosts line in /etc/nsswitch.conf, and compare getent hosts ${names[0]!} with ndots query ${names[0]!}`,
      disproved: `the pod sends DNS queries for ${names[0]!} to its name server`,
      counted: new Map(
        [...Map.groupBy(failing, ({ client }) => client)].map(([client, all]) => [
          client,
          triesOf(all),
        ]),
      ),
      affected: [],
    };
  },
};

function triesOf(all: readonly MulticastName[]): number {
  return all.reduce((sum, { tries }) => sum + tries, 0);
}

function viewsOf(name: string, { names }: Observations): readonly NameView[] {
  return addressTypes.flatMap((type) => names.get(name, type) ?? []);
}

/** True if the same client also queries a name server for this name, so it does not depend on multicast. */
function isAskedHere({ name, client }: MulticastName, observed: Observations): boolean {
  return viewsOf(name, observed).some(({ lastClients }) => lastClients.includes(client));
}
