/** Connections that fail although the lookup before them was answered. */
import { failedContacts, onlyIpv6Fails } from '../observe/failed-contacts.ts';
import { sentence } from '../texts.ts';
import { MAX_LISTED_CONTACTS, MIN_OTHER_CONNECTIONS } from '../thresholds/transport.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** The address was answered, and the connection to it fails. */
export const failedConnections: FindingKind = {
  code: 'ND3091',
  title: 'Connections fail after the lookup',
  name: 'connections that fail after the lookup',
  inCapture(observed) {
    const failing = failedContacts(observed).filter(({ isOfDns }) => !isOfDns);
    if (failing.length === 0)
      return observed.others.opened < MIN_OTHER_CONNECTIONS
        ? unknown('the capture has no connections after lookups (capture more than port 53)')
        : excluded(
            `${observed.others.opened} other connections were seen, and none of them fails often`,
          );
    const isIpv6 = onlyIpv6Fails(observed, failing);
    const proxied = failing.find(({ proxy }) => proxy !== null);
    const counted = new Map<string, number>();
    for (const { contact } of failing)
      for (const [client, count] of contact.clients)
        counted.set(client, (counted.get(client) ?? 0) + count);
    return {
      code: this.code,
      title: this.title,
      severity: 'warning',
      confidence: 0.9,
      seen: [
        ...failing.slice(0, MAX_LISTED_CONTACTS).map(({ text }) => sentence(text)),
        ...(failing.length > MAX_LISTED_CONTACTS
          ? [`${failing.length - MAX_LISTED_CONTACTS} more addresses fail.`]
          : []),
        ...(proxied === undefined
          ? []
          : [
              `${proxied.name} was answered by ${proxied.proxy}, a DNS proxy in the pod, and not by the cluster’s DNS.`,
            ]),
        ...(isIpv6 ? ['All of them are IPv6 addresses; IPv4 connections succeed.'] : []),
      ],
      why: isIpv6
        ? 'The pod has an IPv6 address but no working IPv6 path. Programs try the AAAA address first, and wait until that attempt fails.'
        : proxied !== undefined
          ? `${proxied.proxy}, a DNS proxy in the pod (of a service mesh, or a sidecar), answers from its own table instead of the cluster’s DNS. The address that it gives does not accept connections, so the table may be old.`
          : 'The lookup gave an address, but the server at this address does not accept the connection, rejects it, or replies late. The fault is in the service, its endpoints, a policy or the network path to it.',
      fix: isIpv6
        ? [
            'Give the pods a working IPv6 path, or remove their global IPv6 address and default route.',
            'Until then, answer without AAAA records: template IN AAAA . { rcode NOERROR } in the Corefile.',
          ]
        : [
            ...(proxied === undefined
              ? []
              : [
                  `Compare with the cluster: ndots query ${proxied.name} @DNS-SERVICE. If the address differs, restart the proxy, or find out why it gets no updates.`,
                ]),
            'Check the service: kubectl get endpointslices, its pods and their logs, and network policies.',
            ...(failing[0]!.name === null
              ? [
                  'No lookup in this capture gave the address: the program may have remembered an old one (its own cache, as in the JVM), or have it in its configuration. Restart it.',
                ]
              : []),
            'If the address itself is old or wrong, compare the record with the service and with the authoritative server.',
          ],
      prove: `in the pod: nc -vz -w 3 ${failing[0]!.contact.server} ${failing[0]!.contact.port}`,
      disproved: 'the name now has another address, and connections to that one succeed',
      exchanges: [],
      counted,
    };
  },
};
