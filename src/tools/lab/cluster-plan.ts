/** What a lab is made of: objects, Corefile, network, and the programs that run in it. */
import type { Environment } from '../../server/base/environment.ts';
import type { Script } from '../resolver/answers-file.ts';
import type { OwnFiles } from './files.ts';
import type { Machine } from './network.ts';

/** How kube-proxy's rules are written: its two modes. */
export type RuleMode = 'iptables' | 'nftables';

/** What a cluster of the lab is made of. */
export interface ClusterPlan {
  /** Kubernetes objects: a file, or a folder. */
  readonly manifests: string;
  /**
   * The Corefile of the DNS pods, those behind the service kube-system/kube-dns. `@API@` stands for
   * the API server's URL.
   */
  readonly corefile: string;
  /** The node's resolv.conf, whose search domains kubelet gives to all pods. */
  readonly nodeResolvConf: string;
  readonly mode: RuleMode;
  /** Whether pods also have an IPv6 address, so that clients ask for AAAA. */
  readonly ipv6: boolean;
  /** DNS servers outside the cluster, and their answers. */
  readonly internet: { readonly addresses: readonly string[]; readonly script: Script };
  /** Further files of single pods, by `namespace/name`. */
  readonly files?: Readonly<Record<string, OwnFiles>>;
}

/** Programs that a lab starts. */
export interface LabPrograms {
  /** The command line that begins `ndots serve`. */
  readonly ndots: readonly string[];
  /** A CoreDNS to run instead; null: ndots serves. */
  readonly coredns: string | null;
  /** Its `PATH` is searched for programs. */
  readonly env: Environment;
}

/** A pod that runs in the lab. */
export interface LabPod extends Machine {
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly files: OwnFiles;
}

/** The DNS service of a cluster. */
export const DNS_SERVICE: string = 'kube-system/kube-dns';
/** Where the API server of a lab listens. */
export const API_HOST: string = '172.18.255.250';
export const API_URL: string = `http://${API_HOST}:8080`;
