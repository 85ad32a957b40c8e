/** Reads pods and their workloads from the cluster that kubectl would use. */
import { systemClock } from '../../server/base/clock.ts';
import {
  asObject,
  child,
  children,
  text,
  texts,
  type JsonObject,
} from '../../server/base/json-object.ts';
import { apiClient, userAgent } from '../../server/kube/api/client.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { getJson } from '../../server/kube/api/get-json.ts';
import { listWhole } from './list.ts';
import type { PodSource } from './pod-source.ts';
import type { ResourceKind } from './resource-name.ts';
import { clusterNotAsked } from './not-asked.ts';
import { parseYaml } from '../../server/kube/manifests/yaml-document.ts';
import { dnsNamespaces, dnsServiceIn, serviceAddresses } from './dns-service.ts';
import { unlessMissing } from '../../server/kube/api/one-object.ts';

/** Timeout for a request, in milliseconds. */
const WAIT_MS = 8000;
/** Number of pods searched to find a running one. */
const mostPods = '50';

/** Creates a source that requests each thing only once. Call `close` when done. */
export function clusterPods(
  access: ClusterAccess,
  parts: {
    readonly version: string;
    readonly signal: AbortSignal;
    readonly waitMs?: number;
    /** An option that replaces a cluster: `--manifests DIR`. */
    readonly instead?: string;
  },
): PodSource & { close(): void } {
  const client = apiClient({
    connection: access.connection,
    clock: systemClock,
    userAgent: userAgent(parts.version),
  });
  const get = async (
    task: string,
    path: string,
    query: Readonly<Record<string, string>> = {},
  ): Promise<JsonObject> => {
    const request = { path, query, task, waitMs: parts.waitMs ?? WAIT_MS, signal: parts.signal };
    return asObject(await getJson(client, request));
  };
  const pathOf = ({ group, version, plural }: ResourceKind, namespace: string): string =>
    `${group === '' ? '/api' : `/apis/${group}`}/${version}/namespaces/${namespace}/${plural}`;
  return {
    name: access.name,
    isDirectory: false,
    namespace: access.namespace,
    namespaces: null,
    close: () => client.close(),
    async get(of, namespace, name) {
      const where = namespace ?? access.namespace;
      try {
        const path = `${pathOf(of, where)}/${name}`;
        return await unlessMissing(() => get(`get ${of.plural}`, path));
      } catch (error) {
        throw told(error, `get ${of.plural} ${name}`, where, parts.instead);
      }
    },
    async pods(namespace, labelSelector) {
      const query = { labelSelector, limit: mostPods };
      try {
        const found = await get('list pods', `/api/v1/namespaces/${namespace}/pods`, query);
        return children(found, 'items');
      } catch (error) {
        // Without permission to list pods, the template can still be used.
        if (error instanceof ApiFailure && error.kind === 'forbidden') return [];
        throw told(error, 'get pods', namespace, parts.instead);
      }
    },
    async names(of, namespace) {
      const path = pathOf(of, namespace ?? access.namespace);
      const names: string[] = [];
      const { waitMs = WAIT_MS, signal } = parts;
      await listWhole(client, { path, waitMs, signal }, (item) =>
        names.push(text(child(item, 'metadata'), 'name')),
      );
      return names;
    },
    async dnsAddresses(node) {
      // Skip objects that this account may not read. Only permission to list services is required.
      const orNothing = (found: Promise<JsonObject>): Promise<JsonObject> =>
        found.catch((error: unknown) => {
          if (error instanceof ApiFailure) return asObject(null);
          throw error;
        });
      const servicesIn = (namespace: string): Promise<JsonObject> =>
        orNothing(get('list services', `/api/v1/namespaces/${namespace}/services`));
      const [configz, kubeadms, ...lists] = await Promise.all([
        node === ''
          ? asObject(null)
          : orNothing(get('get nodes/proxy', `/api/v1/nodes/${node}/proxy/configz`)),
        orNothing(
          get('get configmaps', '/api/v1/namespaces/kube-system/configmaps/kubelet-config'),
        ),
        ...dnsNamespaces.map(servicesIn),
      ]);
      const running = texts(child(configz, 'kubeletconfig'), 'clusterDNS');
      if (running.length > 0) return running;
      const written = kubeletClusterDns(text(child(kubeadms, 'data'), 'kubelet'));
      if (written.length > 0) return written;
      const service = dnsServiceIn(lists.flatMap((found) => children(found, 'items')));
      return service === null ? [] : serviceAddresses(service).slice(0, 1);
    },
  };
}

/** Returns `clusterDNS` from the KubeletConfiguration that kubeadm stores in a ConfigMap. */
function kubeletClusterDns(yaml: string): readonly string[] {
  const [document] = parseYaml(yaml, 'kubelet-config').documents;
  return texts(asObject(document?.value), 'clusterDNS');
}

/** Formats the error for the command line. */
function told(error: unknown, command: string, namespace: string, instead?: string): unknown {
  if (!(error instanceof ApiFailure)) return error;
  const hint =
    error.kind === 'forbidden'
      ? `Check your permissions: kubectl auth can-i ${command} -n ${namespace}`
      : undefined;
  return clusterNotAsked(error, {
    hint,
    remedy: `Check that this works: kubectl ${command} -n ${namespace}.${instead === undefined ? '' : ` Without a cluster, use ${instead}`}`,
  });
}
