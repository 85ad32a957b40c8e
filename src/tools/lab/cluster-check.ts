/**
 * Detects manifests that are valid but cannot be used in a lab because of duplicate addresses, reserved names or a
 * missing DNS server.
 */
import { child, text, texts } from '../../server/base/json-object.ts';
import { Problem, type Place } from '../../server/base/problem.ts';
import { manifestsState } from './proxy-rules/cluster-state.ts';
import type { Manifest } from '../../server/kube/manifests/manifest.ts';
import { impliedNodes, type ImpliedPod } from '../../server/kube/manifests/pods.ts';
import { endpointAddresses } from './endpoints.ts';
import { API_HOST, DNS_SERVICE } from './cluster-plan.ts';

/** Names that the lab's own machines use. */
const TAKEN = new Set(['internet']);
const policies = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'];

/** @param outside addresses on the lab's internet */
export function checkCluster(
  manifests: readonly Manifest[],
  pods: readonly ImpliedPod[],
  outside: readonly string[],
): readonly Problem[] {
  const problems: Problem[] = [];
  const placeOf = (kind: string, namespace: string, name: string): Place | undefined =>
    manifests.find((one) => one.kind === kind && one.namespace === namespace && one.name === name)
      ?.place;
  const tell = (text: string, place: Place | undefined, remedy: string): void =>
    void problems.push(new Problem({ code: 'lab-cluster', text, place, remedy }));
  const owners = new Map<string, string>(
    [...outside, API_HOST].map((ip) => [ip, 'the lab’s internet']),
  );
  const own = (ip: string, who: string, place: Place | undefined): void => {
    const other = owners.get(ip);
    if (other !== undefined && other !== who)
      tell(
        `${who} has the address ${ip}, which ${other} already has`,
        place,
        'Give it another one.',
      );
    owners.set(ip, who);
  };
  for (const { name, ips } of impliedNodes([...manifests])) {
    const place = placeOf('Node', '', name);
    if (TAKEN.has(name))
      tell(`a node in a lab cannot be called ${name}`, place, 'Call it otherwise.');
    for (const ip of ips) own(ip, `the node ${name}`, place);
  }
  for (const { namespace, name, ips, nodeName, spec } of pods) {
    const place = placeOf('Pod', namespace, name);
    const who = `the pod ${namespace}/${name}`;
    if (TAKEN.has(nodeName))
      tell(
        `${who} is on the node ${nodeName}, a name that labs reserve`,
        place,
        'Call the node otherwise.',
      );
    for (const ip of ips) own(ip, who, place);
    if (!ips.some((ip) => !ip.includes(':')))
      tell(`${who} has no IPv4 address`, place, 'Lab services use IPv4, so add an IPv4 address.');
    const policy = text(spec, 'dnsPolicy');
    if (policy !== '' && !policies.includes(policy))
      tell(`${who} has the dnsPolicy ${policy}`, place, `One of ${policies.join(', ')}`);
    if (policy === 'None' && texts(child(spec, 'dnsConfig'), 'nameservers').length === 0)
      tell(`${who} has the dnsPolicy None and no nameservers`, place, 'Set them in its dnsConfig.');
  }
  if (problems.length > 0) return problems;
  const state = manifestsState([...manifests], (problem) => void problems.push(problem));
  const served = endpointAddresses(state.slices, DNS_SERVICE).filter((ip) =>
    pods.some(({ ips }) => ips.includes(ip)),
  );
  if (problems.length === 0 && served.length === 0) {
    const [namespace = '', name = ''] = DNS_SERVICE.split('/');
    const place = placeOf('Service', namespace, name);
    tell(
      place === undefined
        ? `there is no service ${DNS_SERVICE}, so there would be no DNS server`
        : `the service ${DNS_SERVICE} has no pods, so there would be no DNS server`,
      place,
      place === undefined
        ? 'Add it, with pods that its selector matches; examples/cluster has one.'
        : 'Its selector must match a pod’s labels.',
    );
  }
  return problems;
}
