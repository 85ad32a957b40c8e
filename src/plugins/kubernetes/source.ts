/** Which source a directive names: a folder of manifests, or an API server and the way to it. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import { apiServerSource } from '../../kube/api/api-server.ts';
import type { RestHooks } from '../../kube/api/client.ts';
import {
  endpointConnection,
  inClusterConnection,
  kubeconfigConnection,
  type Connection,
} from '../../kube/api/connection.ts';
import { shareOfThread } from '../../kube/api/work-share.ts';
import { manifestSource } from '../../kube/manifests/manifest-folder.ts';
import type { Source, Wanted } from '../../kube/store/source.ts';
import { defaultBuckets } from '../../metrics/buckets.ts';
import type { Registry } from '../../metrics/registry.ts';
import type { KubernetesOptions } from './options.ts';

/** What a context of either plane says that matters to the source. */
export interface Surroundings {
  path(file: string): string;
  has(plugin: string): boolean;
}

/** Everything that makes two instances of the plugin see the same objects in the same form: they share one data set. */
export interface SourcePlan {
  readonly manifests: string | null;
  readonly endpoint: string | null;
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | null;
  readonly kubeconfig: { readonly file: string; readonly context: string | null } | null;
  readonly snapshot: string | null;
  readonly limits: {
    readonly perSecond: number;
    readonly burst: number;
    readonly inFlight: number;
  };
  readonly wanted: Wanted;
  /** Endpoints go by the names of their pods. */
  readonly podNames: boolean;
  /** Names and labels of client pods are told to metadata. */
  readonly clientNames: boolean;
}

/** client-go's number, where a rate is set but no burst. */
const BURST = 10;

/** The same in the control part and in every worker, so that both find the same data set. */
export function planSource(options: KubernetesOptions, context: Surroundings): SourcePlan {
  const { manifests, endpoints, tls, kubeconfig, snapshot } = options;
  const path = (file: string): string => context.path(file);
  const verified = options.pods === 'verified';
  const clientNames = verified && context.has('metadata');
  return {
    manifests: manifests === null ? null : path(manifests),
    endpoint: endpoints[0] ?? null,
    tls: tls === null ? null : { cert: path(tls.cert), key: path(tls.key), ca: path(tls.ca) },
    kubeconfig:
      kubeconfig === null ? null : { file: path(kubeconfig.file), context: kubeconfig.context },
    snapshot: snapshot === null ? null : path(snapshot),
    limits: {
      perSecond: options.apiserverQps,
      burst: options.apiserverBurst > 0 ? options.apiserverBurst : BURST,
      inFlight: options.apiserverMaxInflight,
    },
    wanted: {
      endpoints: !options.noEndpoints,
      pods: verified,
      multicluster: (options.multicluster ?? []).length > 0,
      labels: options.labels,
      namespaceLabels: options.namespaceLabels,
      zones: options.zonal,
      podLabels: clientNames,
    },
    podNames: options.endpointPodNames,
    clientNames,
  };
}

/** The key of this plan's data set. */
export function sourceKey(plan: SourcePlan): string {
  return `kubernetes/${JSON.stringify(plan)}`;
}

/** What opening a source takes. */
export interface SourceParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Opens the source that the plan names. @throws Problem (folder, files, environment) */
export function openSource(plan: SourcePlan, parts: SourceParts): Source {
  const { clock, log, random } = parts;
  const { wanted } = plan;
  if (plan.manifests !== null)
    return manifestSource({ folder: plan.manifests, wanted, clock, log });
  return apiServerSource({
    connection: connect(plan, parts),
    wanted,
    clock,
    random,
    log,
    hooks: restHooks(parts.metrics),
    limits: plan.limits,
    share: shareOfThread(clock),
    ...(plan.snapshot === null ? {} : { snapshotFile: plan.snapshot }),
  });
}

/** `kubeconfig` goes before `endpoint`, as in CoreDNS. */
function connect(
  { kubeconfig, endpoint, tls }: SourcePlan,
  { clock, env }: SourceParts,
): Connection {
  if (kubeconfig !== null)
    return kubeconfigConnection(kubeconfig.file, kubeconfig.context ?? undefined, clock);
  return endpoint === null
    ? inClusterConnection({ environment: env })
    : endpointConnection(endpoint, tls);
}

function restHooks(metrics: Registry): RestHooks {
  const requests = metrics.counter(
    'coredns_kubernetes_rest_client_requests_total',
    'Number of HTTP requests, partitioned by status code, method, and host.',
    ['code', 'method', 'host'],
  );
  const duration = metrics.histogram(
    'coredns_kubernetes_rest_client_request_duration_seconds',
    'Request latency in seconds. Broken down by verb and host.',
    ['verb', 'host'],
    defaultBuckets,
  );
  const limited = metrics.histogram(
    'coredns_kubernetes_rest_client_rate_limiter_duration_seconds',
    'Client side rate limiter latency in seconds. Broken down by verb and host.',
    ['verb', 'host'],
    defaultBuckets,
  );
  return {
    requested: ({ code, method, host }) => requests.with(code, method, host).add(1),
    took: ({ verb, host }, seconds) => duration.with(verb, host).observe(seconds),
    heldBack: ({ verb, host }, seconds) => limited.with(verb, host).observe(seconds),
  };
}
