/** Reads pods and their workloads from the cluster that kubectl would use. */
import { systemClock } from '../../base/clock.ts';
import { asObject, child, children, text, texts, type JsonObject } from '../../base/json-object.ts';
import { apiClient, userAgent } from '../api/client.ts';
import type { ClusterAccess } from '../api/cluster-access.ts';
import { ApiFailure } from '../api/failure.ts';
import { getJson } from '../api/get-json.ts';
import { listWhole } from '../api/list.ts';
import type { PodSource } from './pod-source.ts';
import type { ResourceKind } from './resource-name.ts';
import { clusterNotAsked } from '../api/not-asked.ts';
import { unlessMissing } from '../api/one-object.ts';

/** Time limit for a request, in milliseconds. */
const WAIT_MS = 8000;
/** How many pods are searched for a running one. */
const mostPods = '50';

/** A source that requests each thing once; call `close` at the end. */
export function clusterPods(
  access: ClusterAccess,
  parts: {
    readonly version: string;
    readonly signal: AbortSignal;
    readonly waitMs?: number;
    /** What can be given instead of a cluster: `--manifests DIR`. */
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
    isFolder: false,
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
        // Without the right to list pods, the template is still used.
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
    async dnsAddresses() {
      const query = { labelSelector: 'k8s-app=kube-dns' };
      const path = '/api/v1/namespaces/kube-system/services';
      const found = await get('list services', path, query).catch((error: unknown) => {
        if (error instanceof ApiFailure) return asObject(null);
        throw error;
      });
      return children(found, 'items').flatMap(serviceAddresses).slice(0, 3);
    },
  };
}

/** The addresses of a service; none if it is headless. */
export function serviceAddresses(service: JsonObject): readonly string[] {
  const spec = child(service, 'spec');
  const all = texts(spec, 'clusterIPs');
  return (all.length > 0 ? all : [text(spec, 'clusterIP')]).filter(
    (address) => address !== '' && address !== 'None',
  );
}

/** The error for a person at a command line. */
function told(error: unknown, command: string, namespace: string, instead?: string): unknown {
  if (!(error instanceof ApiFailure)) return error;
  const hint =
    error.kind === 'forbidden'
      ? `May you? kubectl auth can-i ${command} -n ${namespace}`
      : undefined;
  return clusterNotAsked(error, {
    hint,
    remedy: `Does this work: kubectl ${command} -n ${namespace}?${instead === undefined ? '' : ` Without a cluster: ${instead}`}`,
  });
}
