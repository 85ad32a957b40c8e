import { child } from '../../base/json-object.ts';
import { Problem } from '../../base/problem.ts';
import type { EndpointSlice, ObjectKind, KubeObject, Pod, Service } from '../store/objects.ts';
import type { WantedObjects } from '../store/object-source.ts';
import {
  serviceNameLabel,
  transformEndpoints,
  transformNode,
  transformServiceImport,
  transformService,
  transformSlice,
} from '../store/transform.ts';
import { AddressRange, API_SERVER_PLACE, DNS_PLACE } from './address-range.ts';
import type { Manifest } from './manifest.ts';
import { impliedNodes, impliedPods, statedPodIps, type ImpliedPod } from './pods.ts';
import { parseSelector, type Selector } from './selector.ts';
import { impliedSlices, statedFamilies, withHints } from './slices.ts';

/** One object in the implied cluster, and the name under which it is stored. */
export interface ImpliedEntry {
  readonly namespace: string;
  readonly name: string;
  readonly objects: readonly KubeObject[];
}

/**
 * The cluster described by a set of manifests. It contains the explicit objects, and those that controllers would
 * derive from them: pods, endpoint slices, cluster addresses and namespaces. Addresses stay the same from one `build`
 * to the next.
 */
export class ImpliedCluster {
  readonly #wanted: WantedObjects;
  readonly #labels: Selector;
  readonly #namespaceLabels: Selector;
  // The ranges used by kubeadm and kind.
  readonly #services = new AddressRange('10.96.0.0/12');
  readonly #servicesV6 = new AddressRange('fd00:10:96::/108');
  readonly #pods = new AddressRange('10.244.0.0/16');
  readonly #nodes = new AddressRange('172.18.0.0/16');

  /** @param wanted with well-formed selectors */
  constructor(wanted: WantedObjects) {
    this.#wanted = wanted;
    this.#labels = parseSelector(wanted.labels)!;
    this.#namespaceLabels = parseSelector(wanted.namespaceLabels)!;
  }

  /**
   * Creates all objects of the wanted kinds. If two manifests have the same name, the first is used and the other is
   * reported as a problem.
   */
  build(all: readonly Manifest[]): {
    readonly entries: ReadonlyMap<ObjectKind, readonly ImpliedEntry[]>;
    readonly problems: readonly Problem[];
  } {
    const problems: Problem[] = [];
    const manifests = withoutDoubles(all, problems);
    const entries = new Map<ObjectKind, readonly ImpliedEntry[]>();
    const { endpoints, pods, multicluster } = this.#wanted;
    const implied = this.pods(manifests);
    entries.set('Namespace', this.#namespaceEntries(manifests));
    entries.set('Service', this.#serviceEntries(manifests, problems));
    if (endpoints || multicluster)
      entries.set('EndpointSlice', this.#sliceEntries(manifests, implied));
    if (pods) entries.set('Pod', this.#podEntries(implied));
    const { topology } = this.#wanted;
    if (topology === 'nodes' || topology === 'pods') {
      entries.set(
        'Node',
        ofKind(manifests, 'Node').map((one) => entry(one, transformNode(one.raw))),
      );
    }
    if (multicluster) {
      entries.set(
        'ServiceImport',
        ofKind(manifests, 'ServiceImport').map((one) =>
          entry(one, transformServiceImport(one.raw)),
        ),
      );
    }
    return { entries, problems };
  }

  /** Returns all pods, both explicit ones and those that workloads would create. */
  pods(manifests: readonly Manifest[]): ImpliedPod[] {
    const nodes = impliedNodes(manifests);
    this.#pods.begin(statedPodIps(manifests));
    this.#nodes.begin(nodes.flatMap((node) => node.ips));
    const pods = impliedPods(manifests, nodes, this.#pods, this.#nodes);
    this.#pods.end();
    this.#nodes.end();
    return pods;
  }

  #namespaceEntries(manifests: readonly Manifest[]): ImpliedEntry[] {
    const written = ofKind(manifests, 'Namespace');
    const labels = new Map(written.map((one) => [one.name, one.labels]));
    const names = new Set(['default', ...written.map((one) => one.name)]);
    for (const { namespace } of manifests) if (namespace !== '') names.add(namespace);
    return [...names]
      .filter((name) =>
        this.#namespaceLabels({ 'kubernetes.io/metadata.name': name, ...labels.get(name) }),
      )
      .map((name) => ({ namespace: '', name, objects: [{ kind: 'Namespace', name }] }));
  }

  #serviceEntries(manifests: readonly Manifest[], problems: Problem[]): ImpliedEntry[] {
    const services = ofKind(manifests, 'Service');
    const owners = new Map<string, Manifest>();
    for (const service of services) {
      for (const ip of transformService(service.raw)[0].clusterIPs) {
        const owner = owners.get(ip);
        if (ip === 'None') continue;
        if (owner === undefined) owners.set(ip, service);
        else problems.push(takenProblem(ip, service, owner));
      }
    }
    this.#services.begin(owners.keys());
    this.#servicesV6.begin(owners.keys());
    const entries: ImpliedEntry[] = [];
    for (const service of services) {
      const own = this.#withAddresses(service, transformService(service.raw)[0]);
      if (this.#labels(service.labels)) entries.push(entry(service, [own]));
    }
    this.#services.end();
    this.#servicesV6.end();
    return entries;
  }

  #withAddresses(manifest: Manifest, service: Service): Service {
    if (service.type === 'ExternalName' || service.clusterIPs.length > 0) return service;
    const spec = child(manifest.raw, 'spec');
    const key = `${service.namespace}/${service.name}`;
    const clusterIPs = (statedFamilies(spec) ?? ['IPv4'])
      .map((family) => {
        const range = family === 'IPv4' ? this.#services : this.#servicesV6;
        return range.take(key, customaryPlace(key));
      })
      .filter((ip) => ip !== null);
    return { ...service, clusterIPs };
  }

  #sliceEntries(manifests: readonly Manifest[], pods: readonly ImpliedPod[]): ImpliedEntry[] {
    const { topology } = this.#wanted;
    const keep = { zones: this.#wanted.zones, podLabels: false, topology };
    const entries: ImpliedEntry[] = [];
    const served = new Set<string>();
    const add = (manifest: Manifest, slices: readonly EndpointSlice[]): void => {
      if (!this.#labels(manifest.labels)) return;
      const kept = slices.filter((slice) => this.#wanted.endpoints || slice.importedService);
      if (kept.length > 0) entries.push(entry(manifest, kept));
    };
    for (const manifest of ofKind(manifests, 'EndpointSlice')) {
      served.add(`${manifest.namespace}/${manifest.labels[serviceNameLabel] ?? ''}`);
      add(manifest, transformSlice(manifest.raw, keep));
    }
    // An export from a live cluster contains both forms of the same endpoints.
    for (const manifest of ofKind(manifests, 'Endpoints')) {
      const key = `${manifest.namespace}/${manifest.name}`;
      if (served.has(key)) continue;
      served.add(key);
      add(manifest, transformEndpoints(manifest.raw));
    }
    const zones = new Map(impliedNodes(manifests).map(({ name, zone }) => [name, zone]));
    const byNamespace = Map.groupBy(pods, ({ namespace }) => namespace);
    for (const service of ofKind(manifests, 'Service')) {
      if (served.has(`${service.namespace}/${service.name}`)) continue;
      for (const slice of impliedSlices(service, byNamespace.get(service.namespace) ?? [], zones)) {
        const hinted = topology === undefined ? slice : withHints(service, slice);
        const zoned = keep.zones ? hinted : withoutZones(hinted);
        add({ ...service, name: slice.name }, [zoned]);
      }
    }
    return entries;
  }

  #podEntries(pods: readonly ImpliedPod[]): ImpliedEntry[] {
    return pods
      .filter((pod) => !['Succeeded', 'Failed', 'Unknown'].includes(pod.phase))
      .filter((pod) => this.#labels(pod.labels))
      .map((pod) => {
        const object: Pod = {
          kind: 'Pod',
          namespace: pod.namespace,
          name: pod.name,
          ips: pod.ips,
          phase: pod.phase,
          hostNetwork: pod.hostNetwork,
          terminating: pod.terminating,
          ...(this.#wanted.podLabels ? { labels: pod.labels } : {}),
          ...(this.#wanted.topology === 'pods' ? { nodeName: pod.nodeName } : {}),
        };
        return { namespace: pod.namespace, name: pod.name, objects: [object] };
      });
  }
}

function withoutDoubles(all: readonly Manifest[], problems: Problem[]): Manifest[] {
  const seen = new Map<string, Manifest>();
  for (const manifest of all) {
    const key = `${manifest.kind}/${manifest.namespace}/${manifest.name}`;
    const first = seen.get(key);
    if (first === undefined) {
      seen.set(key, manifest);
      continue;
    }
    problems.push(
      new Problem({
        code: 'manifest-twice',
        text: `${manifest.kind} ${named(manifest)} already exists`,
        place: manifest.place,
        hint: `the first one is at ${first.place.file}:${first.place.line}, and is used`,
      }),
    );
  }
  return [...seen.values()];
}

function takenProblem(ip: string, service: Manifest, owner: Manifest): Problem {
  return new Problem({
    code: 'cluster-ip-twice',
    text: `service ${named(service)} has the same address ${ip} as service ${named(owner)}`,
    place: service.place,
    hint: `the other one is at ${owner.place.file}:${owner.place.line}; both are served`,
  });
}

function named(manifest: Manifest): string {
  return manifest.namespace === '' ? manifest.name : `${manifest.namespace}/${manifest.name}`;
}

function ofKind(manifests: readonly Manifest[], kind: Manifest['kind']): Manifest[] {
  return manifests.filter((manifest) => manifest.kind === kind);
}

function entry(manifest: Manifest, objects: readonly KubeObject[]): ImpliedEntry {
  return { namespace: manifest.namespace, name: manifest.name, objects };
}

function withoutZones(slice: EndpointSlice): EndpointSlice {
  return { ...slice, endpoints: slice.endpoints.map((endpoint) => ({ ...endpoint, zone: '' })) };
}

function customaryPlace(key: string): number | undefined {
  if (key === 'default/kubernetes') return API_SERVER_PLACE;
  return key === 'kube-system/kube-dns' ? DNS_PLACE : undefined;
}
