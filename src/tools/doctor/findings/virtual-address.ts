/** Addresses that only a proxy beside the program understands, as those of a service mesh. */
import { netHolds, parseAddress, parseNet } from '../../../server/base/ip.ts';
import { contactsWithin, isFailing } from '../observe/contacts-within.ts';
import { listed, sentence, share } from '../texts.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/**
 * Reserved ranges that no route leads to: class E (RFC 1112), and the ones for benchmarks (RFC
 * 2544, RFC 5180). Istio takes 240.240.0.0/16 and 2001:2::/48, other meshes all of class E; proxies
 * with false addresses take 198.18.0.0/15.
 */
const VIRTUAL = ['240.0.0.0/4', '198.18.0.0/15', '2001:2::/48'].map(
  (text) => [text, parseNet(text)!] as const,
);

/** A name has the virtual address of a mesh, and a pod without its proxy connects to it. */
export const virtualAddress: FindingKind = {
  code: 'ND4047',
  title:
    'A name has a virtual address of a service mesh, and pods without its sidecar connect to it',
  name: 'virtual addresses of a mesh',
  inCapture(observed, claims) {
    const views = observed.names.list.filter(({ addresses }) =>
      addresses.some((address) => rangeOf(address) !== null),
    );
    if (observed.names.list.every(({ addresses }) => addresses.length === 0))
      return unknown('no address was answered');
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
    const servers = [
      ...new Set(views.flatMap((view) => [...view.servers].map(([server]) => server))),
    ];
    const clients = [...sum.clients.keys()];
    if (isDead) for (const { server } of sum.failing) claims.addresses.add(server);
    else if (sum.opened > 0)
      return excluded('connections to reserved addresses open: a proxy takes them');
    return {
      code: this.code,
      title: isDead
        ? this.title
        : 'Names have a reserved address, as service meshes use for their sidecars',
      severity: isDead ? 'critical' : 'info',
      confidence: 0.93,
      seen: [
        sentence(
          `${listed(servers)} answered ${name} with ${address}. That address is in ${range}, which is reserved and not routed: it is virtual. Names: ${listed(names)}`,
        ),
        ...(isDead
          ? [
              `${share(sum.failed, sum.opened)} connections from ${listed(clients)} to ${listed(sum.failing.map(({ server, port }) => `${server} port ${port}`))} failed.`,
            ]
          : []),
      ],
      why: `A service mesh gives external services such addresses (Istio: ServiceEntry with automatic addresses, or the old .global names). Only its sidecar or node proxy, which takes the connection before it leaves the pod, knows where they lead. ${isDead ? 'These pods have no sidecar (injection is off, or the traffic is excluded from it), so that their packets leave for an address that does not exist.' : 'A pod without the sidecar cannot connect to them.'}`,
      fix: isDead
        ? [
            `Put the sidecar into the pods of ${listed(clients)} (label istio-injection=enabled or sidecar.istio.io/inject, then create them again), or enroll their namespace in ambient mode.`,
            `If they should not be in the mesh, do not give them this address: keep ${name} in the proxies (Istio DNS proxying) and out of the cluster’s DNS, or use a name with a real address.`,
          ]
        : ['Nothing, if all clients of these names have the sidecar.'],
      prove: `kubectl get pod POD -o jsonpath='{.spec.containers[*].name} {.spec.initContainers[*].name}': istio-proxy is missing in the pod that fails`,
      disproved: `a pod without a sidecar connects to ${address}`,
      ...(isDead ? { counted: sum.clients } : {}),
      exchanges: [],
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
