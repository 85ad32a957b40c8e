/** The interface to pods and their workloads, in a cluster or in a directory of manifests. */
import type { JsonObject } from '../../base/json-object.ts';
import type { PodOwnerKind, ResourceKind } from './resource-name.ts';

/** Looks up pods and their workloads, one at a time. */
export interface PodSource {
  /** A description for people: `context prod`, or the directory. */
  readonly name: string;
  /** True if it is a directory of manifests, which kubectl knows nothing of. */
  readonly isFolder: boolean;
  /** The default namespace; null: any. */
  readonly namespace: string | null;
  /** All namespaces that there are; null: they are not known here. */
  readonly namespaces: ReadonlySet<string> | null;
  /** The object with this name; null if there is none. */
  get(of: ResourceKind, namespace: string | null, name: string): Promise<JsonObject | null>;
  /** The pods that a selector (in the API's syntax) selects. */
  pods(namespace: string, selector: string): Promise<readonly JsonObject[]>;
  /** Names of all objects of a kind, for completion. */
  names(of: ResourceKind, namespace: string | null): Promise<readonly string[]>;
  /**
   * The name servers that kubelet writes into pods: its clusterDNS where that can be read, else the
   * address of the cluster's DNS service. Empty if neither was found.
   * @param node where the pod runs; empty if that is unknown
   */
  dnsAddresses(node: string): Promise<readonly string[]>;
}

/** By kind: the path within the object of the template that pods are made from. */
export const templatePaths: Readonly<Partial<Record<PodOwnerKind, readonly string[]>>> = {
  Deployment: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};
