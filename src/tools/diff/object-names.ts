/** Names that the objects in a cluster have, along with some that they do not. */
import { asObject, child, children, text, texts } from '../../server/base/json-object.ts';
import type { Manifest } from '../../server/kube/manifests/manifest.ts';
import { expandZone } from '../../server/corefile/zones.ts';
import { TYPE } from '../../server/wire/iana.ts';
import { rangeOf, type NamedType } from './witnesses.ts';

/** More objects of each kind than this, plus one per namespace, rarely reveal anything new. */
const OBJECTS_MAX = 200;

/** Names in every cluster zone, which may exist or not. */
const usualNames = [
  ...['', 'svc.', 'default.svc.', 'nothing.default.svc.', 'x.nothing.svc.', 'ns.dns.', 'nothing.'],
  ...['10-9-9-9.default.pod.', 'pod.', 'default.pod.'],
];

/** Returns pod addresses, and object names in the cluster's zones. Also lists the objects that were left out. */
export function objectNames(
  manifests: readonly Manifest[],
  zones: readonly string[],
): {
  readonly names: readonly NamedType[];
  readonly clients: readonly string[];
  readonly left: readonly string[];
} {
  const names: NamedType[] = [];
  const clients: string[] = [];
  const both = [TYPE.A, TYPE.AAAA];
  const add = (name: string, types: readonly number[] = both): void =>
    void names.push({ name, types });
  const reverse = (address: string): void => {
    for (const zone of expandZone(rangeOf(address)) ?? []) add(zone, [TYPE.PTR]);
  };
  const left: string[] = [];
  const chosen = new Map(
    ['Service', 'Pod', 'EndpointSlice'].map((kind) => {
      const all = manifests.filter((each) => each.kind === kind);
      const some = spread(all);
      if (some.length < all.length)
        left.push(`the names of ${all.length - some.length} of ${all.length} ${kind} objects`);
      return [kind, some] as const;
    }),
  );
  const of = (kind: string): readonly Manifest[] => chosen.get(kind)!;
  for (const zone of zones) {
    for (const name of usualNames) add(`${name}${zone}`);
    add(`dns-version.${zone}`, [TYPE.TXT]);
    add(zone, [TYPE.SOA, TYPE.NS]);
    for (const { namespace, name, raw } of of('Service')) {
      const service = `${name}.${namespace}.svc.${zone}`;
      add(service, [...both, TYPE.SRV, TYPE.TXT]);
      add(`nothing.${service}`);
      for (const port of children(child(raw, 'spec'), 'ports')) {
        const label = text(port, 'name');
        const protocol = (text(port, 'protocol') || 'TCP').toLowerCase();
        if (label !== '') add(`_${label}._${protocol}.${service}`, [TYPE.SRV]);
      }
      // The first search suffix that pods append to other names.
      add(`www.example.com.${namespace}.svc.${zone}`);
    }
    for (const { namespace, raw } of of('Pod')) {
      const address = text(child(raw, 'status'), 'podIP');
      if (address !== '') add(`${address.replaceAll(/[.:]/g, '-')}.${namespace}.pod.${zone}`);
    }
    for (const slice of of('EndpointSlice'))
      for (const endpoint of children(slice.raw, 'endpoints')) {
        const host = text(asObject(endpoint), 'hostname');
        const service = slice.labels['kubernetes.io/service-name'] ?? '';
        if (host !== '' && service !== '') add(`${host}.${service}.${slice.namespace}.svc.${zone}`);
      }
  }
  for (const { raw } of of('Service')) {
    const spec = child(raw, 'spec');
    for (const address of [...texts(spec, 'clusterIPs'), text(spec, 'clusterIP')])
      if (address !== '' && address !== 'None') reverse(address);
  }
  for (const { raw } of of('Pod')) {
    const address = text(child(raw, 'status'), 'podIP');
    if (address === '') continue;
    reverse(address);
    if (clients.length < 3) clients.push(address);
  }
  for (const { raw } of of('EndpointSlice'))
    for (const endpoint of children(raw, 'endpoints'))
      for (const address of texts(asObject(endpoint), 'addresses')) reverse(address);
  return { names, clients, left };
}

/** Alternates between namespaces, because configurations treat them differently. */
function spread(all: readonly Manifest[]): readonly Manifest[] {
  const lists = [...Map.groupBy(all, ({ namespace }) => namespace).values()];
  const most = Math.max(OBJECTS_MAX, lists.length);
  if (all.length <= most) return all;
  const found: Manifest[] = [];
  for (let nth = 0; found.length < most; nth++)
    found.push(...lists.flatMap((list) => list.slice(nth, nth + 1)));
  return found.slice(0, most);
}
