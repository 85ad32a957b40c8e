/** Reads pods and their workloads from a directory of manifests or from a single file. */
import { child, type JsonObject } from '../../server/base/json-object.ts';
import type { Problem } from '../../server/base/problem.ts';
import type { Manifest } from '../../server/kube/manifests/manifest.ts';
import { readManifestsOnce } from '../../server/kube/manifests/read-once.ts';
import { parseSelector } from '../../server/kube/manifests/selector.ts';
import { dnsNamespaces, dnsServiceIn, serviceAddresses } from './dns-service.ts';
import { templateLabels } from './pod-behind.ts';
import { templatePaths, type PodSource } from './pod-source.ts';
import { resourceKinds } from './resource-name.ts';

/** Throws a `Problem` if the path cannot be read. Problems within files are passed to `problem`. */
export async function manifestPods(
  path: string,
  problem: (problem: Problem) => void,
): Promise<PodSource> {
  const manifests = await readManifestsOnce(path, problem);
  const inside = (manifest: Manifest, namespace: string | null): boolean =>
    namespace === null || manifest.namespace === namespace;
  return {
    name: path,
    isDirectory: true,
    namespace: null,
    // A namespace that contains an object exists, whether or not the manifests include the Namespace itself.
    namespaces: new Set([
      'default',
      ...manifests.map(({ kind, namespace, name: own }) =>
        kind === 'Namespace' ? own : namespace,
      ),
    ]),
    get: ({ kind }, namespace, name) => {
      const found = manifests.find(
        (one) => one.kind === kind && one.name === name && inside(one, namespace),
      );
      return Promise.resolve(found?.raw ?? null);
    },
    // Explicit pods, and those that a workload would create.
    pods: (namespace, selector) => {
      const selects = parseSelector(selector);
      if (selects === null) return Promise.resolve([]);
      const here = manifests.filter((one) => one.namespace === namespace);
      const written = here.filter((one) => one.kind === 'Pod' && selects(one.labels));
      const made = here.flatMap((one) => podsOf(one).filter((pod) => selects(templateLabels(pod))));
      return Promise.resolve([...written.map(({ raw }) => raw), ...made]);
    },
    names: ({ kind }, namespace) =>
      Promise.resolve(
        manifests
          .filter((one) => one.kind === kind && inside(one, namespace))
          .map((one) => one.name),
      ),
    dnsAddresses: () => {
      const services = manifests.filter(
        ({ kind, namespace }) =>
          kind === 'Service' && (dnsNamespaces as readonly string[]).includes(namespace),
      );
      const dns = dnsServiceIn(services.map(({ raw }) => raw));
      return Promise.resolve(dns === null ? [] : serviceAddresses(dns).slice(0, 1));
    },
  };
}

/** Returns one pod per workload, created from its template and named after the workload. */
function podsOf({ kind, name, namespace, raw }: Manifest): readonly JsonObject[] {
  const path = resourceKinds.some((known) => known.kind === kind)
    ? templatePaths[kind as keyof typeof templatePaths]
    : undefined;
  if (path === undefined) return [];
  const template = path.reduce<JsonObject>((part, key) => child(part, key), raw);
  const metadata = { ...child(template, 'metadata'), name: `${name}-…`, namespace };
  return [{ ...template, metadata }];
}
