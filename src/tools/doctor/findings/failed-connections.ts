/** Connections that fail although the lookup before them was answered. */
import { printHostPort } from '../../../server/base/ip.ts';
import {
  certificateText,
  failedContacts,
  onlyIpv6Fails,
  type FailedContact,
} from '../observe/failed-contacts.ts';
import { heldAddress } from '../observe/held-address.ts';
import type { Observations } from '../observe/observations.ts';
import { staleServer } from '../observe/stale-server.ts';
import { stuckText, stuckWhy, type StuckSender } from '../observe/stuck-connections.ts';
import { listed } from '../texts.ts';
import { MAX_LISTED_CONTACTS, MIN_OTHER_CONNECTIONS } from '../thresholds/transport.ts';
import { excluded, unknown, type FindingKind, type FoundCause } from './finding.ts';

type Cause = Pick<FoundCause, 'why' | 'fix'> & Partial<Pick<FoundCause, 'title' | 'seen'>>;

export const failedConnections: FindingKind = {
  code: 'ND3091',
  title: 'Connections fail after the lookup',
  name: 'connections that fail after the lookup',
  inCapture(observed, claims) {
    const failing = failedContacts(observed).filter(
      ({ isOfDns, contact }) => !isOfDns && !claims.addresses.has(contact.server),
    );
    if (failing.length === 0)
      return observed.others.opened < MIN_OTHER_CONNECTIONS
        ? unknown('the capture contains no connections after lookups (capture more than port 53)')
        : excluded(
            `${observed.others.opened} other connections were seen, and none of them fails repeatedly`,
          );
    const held = heldAddress(observed, failing);
    const stale = held === null ? staleServer(observed, failing) : null;
    const isIpv6 = onlyIpv6Fails(observed, failing);
    const proxied = failing.find(({ proxy }) => proxy !== null);
    const stuck = stuckOn(observed, failing[0]!);
    const behind = stuck === null ? behindConnection(failing[0]!) : behindStuck(stuck);
    const causes: readonly (Cause | false)[] = [
      held ?? false,
      stale !== null && ofStale(stale),
      isIpv6 && ofIpv6,
      ofServer(observed, failing, proxied, behind),
    ];
    const cause = causes.find((each) => each !== false)!;
    return {
      title: cause.title,
      severity:
        held?.newer === undefined && (stale?.servers.length ?? 0) === 0 ? 'warning' : 'critical',
      confidence: 0.9,
      seen: [
        ...(cause.seen ?? []),
        ...failing
          // Other clients may have failed to connect while the address was still in DNS.
          .filter(({ contact }) => held?.newer === undefined || contact.server !== held.server)
          .slice(0, MAX_LISTED_CONTACTS)
          .flatMap((each) => [each.text, certificateText(each)?.text]),
        failing.length > MAX_LISTED_CONTACTS &&
          `Connections to ${failing.length - MAX_LISTED_CONTACTS} more addresses fail.`,
        stuck !== null && stuckText(stuck),
        proxied !== undefined &&
          `${proxied.name} was answered by ${proxied.proxy}, a DNS proxy in the pod, rather than by the cluster’s DNS.`,
        isIpv6 && 'All of them are IPv6 addresses, while IPv4 connections succeed.',
      ],
      why: cause.why,
      fix: cause.fix,
      prove:
        stale !== null
          ? `run ndots query ${stale.name} @${stale.servers[0] ?? 'POD'} and compare with the other DNS pods`
          : held?.newer !== undefined
            ? `run ndots query ${failing.find(({ contact }) => contact.server === held.server)!.name} in the pod; the answer is ${held.newer}, while ss -tn in its network shows connections to ${held.server}`
            : `run ${behind?.command ?? `nc -vz -w 3 ${failing[0]!.contact.server} ${failing[0]!.contact.port}`} in the pod`,
      disproved:
        held?.newer !== undefined
          ? `DNS still returns ${held.server} for this name`
          : behind === null || stale !== null || isIpv6 || proxied !== undefined
            ? 'the name now has another address, and connections to that one succeed'
            : 'that command succeeds, although the program still fails',
      hits: failing.reduce((sum, { failed }) => sum + failed, 0),
      counted: failuresByClient(failing, held),
    };
  },
};

const ofIpv6: Cause = {
  why: 'The pod has an IPv6 address but no working IPv6 path. Programs try the AAAA address first, and wait until that attempt fails.',
  fix: [
    'Give the pods a working IPv6 path, or remove their global IPv6 address and default route.',
    'Until then, add template IN AAAA . { rcode NOERROR } to the Corefile, so that answers contain no AAAA records.',
  ],
};

function ofStale(stale: NonNullable<ReturnType<typeof staleServer>>): Cause {
  return {
    title: 'DNS pods return different addresses for a name, and connections to one of them fail',
    seen: stale.seen,
    why: `The cluster’s DNS pods disagree. ${stale.servers.length > 0 ? `${listed(stale.servers)} ${stale.servers.length === 1 ? 'has' : 'have'} stale data` : 'One of them has stale data'}, because the watch on the API server hangs or was lost, or its zone has an old entry. Which pod a client reaches is chance, so some connections go to an address that no longer works. (Rarely, the failing address is the newer one, and its pod is not ready.)`,
    fix: [
      stale.servers.length > 0
        ? `Compare the answers with the cluster’s objects (kubectl get service,endpointslices -A -o wide). If the failing address is no longer among them, delete the DNS pod at ${listed(stale.servers)} (kubectl -n kube-system get pods -o wide shows its name), so that it is replaced.`
        : 'Query each DNS pod by its own address to see which one returns the failing address, compare with the cluster’s objects (kubectl get service,endpointslices -A -o wide), and delete the pod that differs.',
      'Check the pod’s log for API connection errors (reflector, watch, i/o timeout).',
    ],
  };
}

/** The fault is at the address, or at the proxy that returned it. */
function ofServer(
  observed: Observations,
  failing: readonly FailedContact[],
  proxied: FailedContact | undefined,
  behind: Behind | null,
): Cause {
  return {
    why:
      proxied === undefined
        ? (behind?.why ??
          'The lookup returned an address, but the server at this address rejects the connection, does not accept it, or replies late. The fault is in the Service, its endpoints, a policy or the network path to it.')
        : `${proxied.proxy} is a DNS proxy in the pod (part of a service mesh, or a sidecar) that answers from its own table. The address that it returns does not accept connections, so the table may be stale.`,
    fix: [
      proxied !== undefined &&
        `Compare with the cluster’s answer (ndots query ${proxied.name} @DNS-SERVICE). If the address differs, restart the proxy, or find out why it does not receive updates.`,
      behind?.fix ?? endpointFix(failing),
      failing[0]!.name === null &&
        (observed.cut.messages > 0
          ? 'The capture has only the beginning of some replies, so it does not show which name has the address. Capture whole packets (tcpdump -s 0).'
          : 'No lookup in this capture returned the address. The program may have cached an old address (the JVM does this) or have it in its configuration. Check the configuration, and restart the program.'),
      'If the address itself may be stale or wrong, compare it with the Service and with the authoritative server.',
    ],
  };
}

/** The number of failed connections by client. For an address that is held, only those of its holders count. */
function failuresByClient(
  failing: readonly FailedContact[],
  held: ReturnType<typeof heldAddress>,
): ReadonlyMap<string, number> {
  const counted = new Map<string, number>();
  for (const { contact } of failing)
    for (const [client, count] of contact.server === held?.server ? held.clients : contact.clients)
      counted.set(client, (counted.get(client) ?? 0) + count);
  return counted;
}

/** The first check if connections do not open. Some endpoints behind a Service’s address may accept them. */
function endpointFix(failing: readonly FailedContact[]): string {
  const { contact, failed } = failing[0]!;
  const dead = failing.flatMap(({ contact: { server, opened }, failed: count }) =>
    contact.behind.has(server) && count === opened ? server : [],
  );
  if (dead.length > 0)
    return `${contact.server} leads to several endpoints, and all connections to ${listed(dead)} fail. Check that pod (kubectl get pods -A -o wide), its readiness probe and its node.`;
  if (failed < contact.opened)
    return `Other connections to ${contact.server} succeed. If they alternate with those that fail, one of the Service’s endpoints is dead: connect to each of them from the pod (kubectl get endpointslices). If not, check the pods and their logs, and network policies.`;
  return 'Check the Service’s endpoints (kubectl get endpointslices), its pods and their logs, and network policies.';
}

/** The sender behind this address, if its large segments do not reach the clients whose requests get no reply. */
function stuckOn(
  { stuckConnections }: Observations,
  { contact, how }: FailedContact,
): StuckSender | null {
  if (how !== 'unanswered' && how !== 'late') return null;
  const isOfThese = ({ address, port, to }: StuckSender): boolean =>
    contact.clients.has(to) && (address === contact.server || port === contact.port);
  return stuckConnections.list.find(isOfThese) ?? null;
}

interface Behind {
  readonly why: string;
  readonly fix: string;
  /** A command that shows the failure, for which the connection has to open. */
  readonly command: string;
}

function behindStuck({ to, address }: StuckSender): Behind {
  return {
    why: `The lookup returned an address, the connection opens, and the program replies. ${stuckWhy}`,
    fix: `Compare the MTU of the pod network with that of the links and tunnels between the nodes of ${address} and ${to}, and allow ICMP “fragmentation needed” on nodes and in security groups.`,
    command: `ping -M do -s 1400 ${address}, then the same with -s 1200,`,
  };
}

/** The cause of a failure on a connection that opened; null if the connection itself fails. */
function behindConnection(failing: FailedContact): Behind | null {
  const { contact, how, name } = failing;
  const { server, port } = contact;
  const target = printHostPort(server, port);
  const curl = `curl -sk -o /dev/null -w '%{http_code} %{time_connect} %{time_starttransfer}\\n' http://${target}/`;
  switch (how) {
    case 'alert':
    case 'handshake':
      return {
        why: 'The lookup returned an address, and the connection opens, but its TLS handshake fails. One side rejects the other’s certificate, TLS version or ciphers.',
        fix:
          certificateText(failing) !== null
            ? `Install a certificate that is valid now on the server at ${server}, and restart or reload that server.`
            : `Compare the certificate and the TLS versions of the server at ${server} with those that the program accepts, and read the logs of both.`,
        command: `openssl s_client -connect ${target}${name === null ? '' : ` -servername ${name.slice(0, -1)}`} </dev/null`,
      };
    case 'late':
    case 'unanswered':
      return {
        why: `The lookup returned an address, and the connection opens at once, but the program behind it ${how === 'late' ? 'replies late' : 'does not reply'}. It is overloaded, or waits for something else, such as a database.`,
        fix: `Check the load, the logs and the dependencies of the program at ${server} port ${port}.`,
        command: curl,
      };
    case 'status':
      return {
        why: 'The lookup returned an address, and the connection opens, but the program behind it replies with an error.',
        fix: `Read the logs of the program at ${server} port ${port}. If it is a proxy, check the servers behind it.`,
        command: curl,
      };
    default:
      return null;
  }
}
