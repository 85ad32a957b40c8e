/** Determines a directive's object source. */
import type { WantedObjects } from '../../../kube/store/object-source.ts';
import type { KubernetesOptions } from '../contract/kubernetes-options.ts';

export interface Surroundings {
  path(file: string): string;
  has(plugin: string): boolean;
}

/**
 * Everything that determines which objects a plugin instance sees and in which form. Instances with equal plans share
 * one data set.
 */
export interface SourcePlan {
  readonly manifests: string | null;
  /** Memory limit for the directory's objects, in bytes. */
  readonly manifestMemory: number;
  /** Memory limit for objects from the API server in bytes. If it is null, it is derived from the process limit. */
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
  /** If true, endpoints without a host name are named after their pod. */
  readonly podNames: boolean;
  /** True if the names and labels of client pods are needed (by `metadata` and `top`). */
  readonly clientNames: boolean;
  /** True if the external addresses of services are needed (by `k8s_external`). */
  readonly outside: boolean;
}

/** client-go's default if a rate is set without a burst. */
const BURST = 10;

/** Gives the same result in the control part and in every worker, so that they all find the same data set. */
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
