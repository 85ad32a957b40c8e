/** Virtual addresses, as service meshes use, which only a proxy next to the program can resolve. */
import { netHolds, parseAddress, parseNet } from '../../../server/base/ip.ts';
import { contactsWithin, isFailing } from '../observe/contacts-within.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { listed, sentence, share } from '../texts.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/**
 * Reserved ranges that are not routed: class E (RFC 1112) and the benchmark ranges (RFC 2544, RFC
 * 5180). Istio uses 240.240.0.0/16 and 2001:2::/48, while other meshes use any of class E. Proxies
 * that hand out fake addresses use 198.18.0.0/15.
 */
const VIRTUAL = ['240.0.0.0/4', '198.18.0.0/15', '2001:2::/48'].map(
  (text) => [text, parseNet(text)!] as const,
);

export const virtualAddress: FindingKind = {
  code: 'ND4047',
  title: 'A name has a service mesh’s virtual address, and pods without a sidecar connect to it',
  name: 'virtual addresses of a mesh',
  inCapture(observed, claims) {
    const views = observed.names.list.filter(({ addresses }) =>
      addresses.some((address) => rangeOf(address) !== null),
    );
    if (observed.names.list.every(({ addresses }) => addresses.length === 0))
      return unknown('no answer contained an address');
    if (views.length === 0) return excluded('no name has a reserved address');
    const given = new Set(views.flatMap(({ addresses }) => addresses));
    const sum = contactsWithin(observed, (server) => given.has(server) && rangeOf(server) !== null);
    const isDead = isFailing(sum);
    const names = [...new Set(views.map(({ name }) => name))];
    const { addresses, name } =
      views.find((view) =>
        view.addresses.some((each) => sum.failing.some(({ server }) => server === each)),
      ) ?? views[0]!;
    const address = addresses.find((each) => rangeOf(each) !== null)!;
    const range = rangeOf(address)!;
    const servers = [...serversOfNames(views)];
    const clients = [...sum.clients.keys()];
    if (isDead) for (const { server } of sum.failing) claims.addresses.add(server);
    else if (sum.opened > 0)
      return excluded('connections to reserved addresses succeed, so a proxy handles them');
    return {
      title: isDead
        ? this.title
        : 'Names have a reserved address of the kind that service meshes assign',
      severity: isDead ? 'critical' : 'info',
      confidence: 0.93,
      seen: [
        sentence(
          `${listed(servers)} answered ${name} with ${address}. That is a virtual address, because ${range} is reserved and not routed. This affects ${listed(names)}`,
        ),
        isDead &&
          `${share(sum.failed, sum.opened)} connections from ${listed(clients)} to ${listed(sum.failing.map(({ server, port }) => `${server} port ${port}`))} failed.`,
      ],
      why: `A service mesh assigns such addresses to external services (in Istio, a ServiceEntry with automatic addresses, or the old .global names). Only its sidecar or node proxy, which intercepts the connection before it leaves the pod, knows the real destination. ${isDead ? 'These pods have no sidecar (injection is off, or the traffic is excluded from it), so their packets go to an address that does not exist.' : 'A pod without the sidecar cannot connect to them.'}`,
      fix: isDead
        ? [
            `Inject the sidecar into the pods of ${listed(clients)} (set the label istio-injection=enabled or sidecar.istio.io/inject, then recreate them), or enroll their namespace in ambient mode.`,
            `If the pods should stay outside the mesh, they must not get this address. Resolve ${name} in the proxies (Istio DNS proxying) and not in the cluster’s DNS, or use a name with a real address.`,
          ]
        : ['No action is needed if all clients that use these names have the sidecar.'],
      prove: `for the failing pod, kubectl get pod POD -o jsonpath='{.spec.containers[*].name} {.spec.initContainers[*].name}' does not list istio-proxy`,
      disproved: `a pod without a sidecar connects to ${address}`,
      ...(isDead ? { counted: sum.clients } : {}),
      affected: isDead ? [] : names,
    };
  },
};

function rangeOf(address: string): string | null {
  const bytes = parseAddress(address);
  const [text] = (bytes === null ? undefined : VIRTUAL.find(([, net]) => netHolds(net, bytes))) ?? [
    null,
  ];
  return address === '255.255.255.255' ? null : text;
}
