/** The parts of a lab: objects, Corefile, network, and the programs that run in it. */
import type { Environment } from '../../server/base/environment.ts';
import type { Script } from '../resolver/answers-file.ts';
import type { OwnFiles } from './files.ts';
import type { Machine } from './network.ts';

/** The two modes of kube-proxy. */
export type RuleMode = 'iptables' | 'nftables';

/** The description of a cluster of the lab. */
export interface ClusterPlan {
  /** Kubernetes objects: a file or a directory. */
  readonly manifests: string;
  /**
   * The Corefile of the DNS pods of the service kube-system/kube-dns. `@API@` is replaced by the API server's
   * URL.
   */
  readonly corefile: string;
  /** The node's resolv.conf, whose search domains kubelet gives to all pods. */
  readonly nodeResolvConf: string;
  readonly mode: RuleMode;
  /** True if pods also have an IPv6 address, so that clients ask for AAAA. */
  readonly ipv6: boolean;
  /** DNS servers outside the cluster, and their answers. */
  readonly internet: { readonly addresses: readonly string[]; readonly script: Script };
  /** Further files of single pods, by `namespace/name`. */
  readonly files?: Readonly<Record<string, OwnFiles>>;
}

export interface LabPrograms {
  /** The command line that begins `ndots serve`. */
  readonly ndots: readonly string[];
  /** A CoreDNS to run instead; null: ndots serves. */
  readonly coredns: string | null;
  /** Its `PATH` is searched for programs. */
  readonly env: Environment;
}

export interface LabPod extends Machine {
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly files: OwnFiles;
}

export const DNS_SERVICE: string = 'kube-system/kube-dns';
/** The address of a lab's API server. */
export const API_HOST: string = '172.18.255.250';
export const API_URL: string = `http://${API_HOST}:8080`;
