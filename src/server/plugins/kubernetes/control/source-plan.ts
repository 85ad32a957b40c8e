/** Determines a directive's object source. */
import type { WantedObjects } from '../../../kube/store/source.ts';
import type { KubernetesOptions } from '../contract/kubernetes-options.ts';

export interface Surroundings {
  path(file: string): string;
  has(plugin: string): boolean;
}

/**
 * Everything that makes two plugin instances see the same objects in the same form, so that they share one data set.
 */
export interface SourcePlan {
  readonly manifests: string | null;
  /** Memory limit for the directory's objects, in bytes. */
  readonly manifestMemory: number;
  /** Memory limit for API server objects in bytes; null derives it from the process limit. */
  readonly apiserverMemory: number | null;
  readonly endpoint: string | null;
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | null;
  readonly kubeconfig: { readonly file: string; readonly context: string | null } | null;
  readonly snapshot: string | null;
  readonly limits: {
    readonly perSecond: number;
    readonly burst: number;
    readonly inFlight: number;
  };
  readonly wanted: WantedObjects;
  readonly podNames: boolean;
  /** True if names and labels of client pods are needed (by `metadata` and `top`). */
  readonly clientNames: boolean;
  /** True if external addresses of services are needed (by `k8s_external`). */
  readonly outside: boolean;
}

/** client-go's default if a rate is set but no burst. */
const BURST = 10;

/** Gives the same result in the control part and in every worker, so that both find the same data set. */
export function planSource(options: KubernetesOptions, context: Surroundings): SourcePlan {
  const { manifests, endpoints, tls, kubeconfig, snapshot } = options;
  const path = (file: string): string => context.path(file);
  const verified = options.pods === 'verified';
  const labelled = verified && context.has('metadata');
  const clientNames = labelled || (verified && context.has('top'));
  return {
    manifests: manifests === null ? null : path(manifests),
    manifestMemory: options.manifestMemoryBytes,
    apiserverMemory: options.apiserverMemoryBytes,
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
      pods: verified || options.topology === 'pods',
      multicluster: (options.multicluster ?? []).length > 0,
      labels: options.labels,
      namespaceLabels: options.namespaceLabels,
      zones: options.zonal,
      podLabels: labelled,
      // Absent unless set, so that snapshot files of older versions stay valid.
      ...(options.topology === null ? {} : { topology: options.topology }),
    },
    podNames: options.endpointPodNames,
    clientNames,
    outside: context.has('k8s_external'),
  };
}

export function sourceKey(plan: SourcePlan): string {
  return `kubernetes/${JSON.stringify(plan)}`;
}
