/** Names that a client asks for by multicast, which no DNS server hears. */
import { TYPE } from '../../../server/wire/iana.ts';
import { MDNS_PORT, type MulticastName } from '../observe/multicast-names.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** `.local` names go to 224.0.0.251 (nss-mdns), single words to 224.0.0.252 (LLMNR). */
export const multicastLookups: FindingKind = {
  code: 'ND2019',
  title:
    'Names are asked for by multicast (mDNS, LLMNR), and the DNS of the cluster never gets them',
  name: 'lookups by multicast',
  inCapture(observed) {
    const open = observed.multicast.unanswered;
    if (open.length === 0) return unknown('no lookup by multicast was seen');
    const alone = open.filter((each) => !isAskedHere(each, observed));
    const failing = triesOf(alone) >= MIN_CASES ? alone : open;
    const tries = triesOf(failing);
    if (tries < MIN_CASES)
      return excluded('hardly a lookup by multicast is left without an answer');
    const goesOn = failing === open;
    const names = [...new Set(failing.map(({ name }) => name))];
    const clients = [...new Set(failing.map(({ client }) => client))];
    const isMdns = failing.some(({ port }) => port === MDNS_PORT);
    const group = isMdns ? '224.0.0.251 (port 5353)' : '224.0.0.252 (port 5355)';
    const elsewhere = (goesOn ? [] : names).flatMap((name) => {
      const servers = [
        ...new Set(viewsOf(name, observed).flatMap(({ answeredMs }) => [...answeredMs.keys()])),
      ];
      return servers.length === 0 ? [] : [{ name, servers }];
    });
    return {
      code: this.code,
      title: this.title,
      severity: goesOn || !isMdns ? 'warning' : 'critical',
      confidence: elsewhere.length > 0 ? 0.95 : 0.9,
      seen: [
        sentence(
          `${listed(clients)} asked for ${listed(names)} by multicast at ${group}, ${tries} times. Nothing answered${goesOn ? ', and the lookup waited for that before it asked a name server' : `, and ${clients.length === 1 ? 'it' : 'they'} sent no DNS query for ${names.length === 1 ? 'this name' : 'these names'}`}`,
        ),
        ...elsewhere.map(
          ({ name, servers }) =>
            `Other clients ask ${listed(servers)} for ${name} and get an address.`,
        ),
      ],
      why: isMdns
        ? 'The resolver of these pods sends names below .local to Multicast DNS: the image has nss-mdns in nsswitch.conf (hosts: files mdns4_minimal [NOTFOUND=return] dns), or systemd-resolved or avahi with MulticastDNS. No host in a pod network answers multicast, and NOTFOUND=return ends the lookup before DNS. .local is reserved for mDNS (RFC 6762), so a company domain below .local collides with it.'
        : 'The resolver of these pods sends single words by multicast (LLMNR, as in systemd-resolved and Windows). No host in a pod network answers.',
      fix: [
        isMdns
          ? 'Remove mdns from the hosts line in the image’s /etc/nsswitch.conf (hosts: files dns), or remove libnss-mdns; in systemd-resolved, set MulticastDNS=no.'
          : 'Turn LLMNR off (LLMNR=no in systemd-resolved), or write the names in full.',
        ...(isMdns ? ['In the long run, do not use .local for a private zone.'] : []),
      ],
      prove: `in the pod: grep hosts /etc/nsswitch.conf, and getent hosts ${names[0]!} beside ndots query ${names[0]!}`,
      disproved: `the pod sends DNS queries for ${names[0]!} to its name server`,
      exchanges: [],
      counted: new Map(
        clients.map((client) => [
          client,
          triesOf(failing.filter((each) => each.client === client)),
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
  return [TYPE.A, TYPE.AAAA].flatMap((type) => {
    const view = names.get(name, type);
    return view !== undefined && view.outcomes.found > 0 ? [view] : [];
  });
}

/** True if the same client asks a name server for it as well: it does not depend on multicast. */
function isAskedHere({ name, client }: MulticastName, { names }: Observations): boolean {
  return [TYPE.A, TYPE.AAAA].some(
    (type) => names.get(name, type)?.lastClients.includes(client) === true,
  );
}
