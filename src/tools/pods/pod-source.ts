/** The interface to pods and their workloads, whether in a cluster or in a directory of manifests. */
import type { JsonObject } from '../../server/base/json-object.ts';
import type { PodOwnerKind, ResourceKind } from './resource-name.ts';

/** Looks up pods and their workloads, one at a time. */
export interface PodSource {
  /** A human-readable description: `context prod`, or the directory. */
  readonly name: string;
  /** True for a directory of manifests, which kubectl cannot access. */
  readonly isDirectory: boolean;
  /** The default namespace; null: any. */
  readonly namespace: string | null;
  /** All existing namespaces, or null if they are not known here. */
  readonly namespaces: ReadonlySet<string> | null;
  get(of: ResourceKind, namespace: string | null, name: string): Promise<JsonObject | null>;
  /** Returns the pods that a selector (in the API's syntax) selects. */
  pods(namespace: string, selector: string): Promise<readonly JsonObject[]>;
  /** Returns the names of all objects of a kind, for shell completion. */
  names(of: ResourceKind, namespace: string | null): Promise<readonly string[]>;
  /**
   * Returns the name servers that the kubelet writes into pods. This is its clusterDNS if that can be read, otherwise
   * the address of the cluster's DNS service. Empty if neither was found.
   * @param node where the pod runs; empty if unknown
   */
  dnsAddresses(node: string): Promise<readonly string[]>;
}

/** By kind, the path within the object to the template from which pods are created. */
export const templatePaths: Readonly<Partial<Record<PodOwnerKind, readonly string[]>>> = {
  Deployment: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};
