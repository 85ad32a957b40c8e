/** The parts of a lab, which are objects, a Corefile, a network, and the programs to run in it. */
import type { Environment } from '../../server/base/environment.ts';
import type { Script } from '../resolver/answers-file.ts';
import type { OwnFiles } from './files.ts';
import type { Machine } from './network.ts';

/** kube-proxy's two modes. */
export type RuleMode = 'iptables' | 'nftables';

export interface ClusterPlan {
  /** A file or directory of Kubernetes objects. */
  readonly manifests: string;
  /**
   * The Corefile for the DNS pods behind kube-system/kube-dns, in which `@API@` is replaced with the API server's URL.
   */
  readonly corefile: string;
  /** The node's resolv.conf. The kubelet passes its search domains on to all pods. */
  readonly nodeResolvConf: string;
  readonly mode: RuleMode;
  /** True if pods also have an IPv6 address, which makes clients query AAAA. */
  readonly ipv6: boolean;
  /** DNS servers outside the cluster, and their answers. */
  readonly internet: { readonly addresses: readonly string[]; readonly script: Script };
  /** Additional files for individual pods, by `namespace/name`. */
  readonly files?: Readonly<Record<string, OwnFiles>>;
}

export interface LabPrograms {
  /** The beginning of the `ndots serve` command line. */
  readonly ndots: readonly string[];
  /** The CoreDNS program to run, or null to run ndots. */
  readonly coredns: string | null;
  /** Programs are searched for in its `PATH`. */
  readonly env: Environment;
}

export interface LabPod extends Machine {
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly files: OwnFiles;
}

export const DNS_SERVICE: string = 'kube-system/kube-dns';
/** The address of the lab's API server. */
export const API_HOST: string = '172.18.255.250';
export const API_URL: string = `http://${API_HOST}:8080`;
