/** The programs for a one-node Kubernetes cluster, and the reasons why a machine cannot run one. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { clusterPrograms, programsOf, type ClusterProgram } from '../kit/cluster/programs.ts';
import { noGo, pinnedGoProgram } from '../kit/go-program.ts';
import { helmProgram } from '../kit/helm.ts';

/** Programs that `test:cluster` does not need. */
const more = {
  kubeadm: 'k8s.io/kubernetes/cmd/kubeadm',
  'kube-proxy': 'k8s.io/kubernetes/cmd/kube-proxy',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  kubelet: 'k8s.io/kubernetes/cmd/kubelet',
} as const;

/** Programs built from Go modules. */
export type NodeProgram = ClusterProgram | keyof typeof more | 'coredns' | 'helm';

export type NodePrograms = Readonly<Record<NodeProgram, string>>;

/** The Kubernetes version pinned in both go.mod files. */
export const KUBERNETES_VERSION = 'v1.36.3';

/** Maps a program to its Debian package. */
const fromDebian: Readonly<Record<string, string>> = {
  containerd: 'containerd',
  runc: 'runc',
  conntrack: 'conntrack',
  iptables: 'iptables',
  ethtool: 'ethtool',
  socat: 'socat',
  mmdebstrap: 'mmdebstrap',
  setcap: 'libcap2-bin',
  nsenter: 'util-linux',
};

/** The directory with Debian's CNI plugins (package containernetworking-plugins). */
export const CNI_PLUGINS = '/usr/lib/cni';

/** The reason why no node can run here, with instructions, or null if one can. */
export function noNode(): string | null {
  if (process.platform !== 'linux') return 'needs Linux';
  if (process.getuid?.() !== 0) return 'needs root, for namespaces and control groups';
  const has = (words: readonly string[]): boolean => spawnSync('sh', ['-c', ...words]).status === 0;
  const missing = Object.entries(fromDebian)
    .filter(([program]) => !has(['command -v "$1"', 'sh', program]))
    .map(([, name]) => name);
  if (!has(['test -x "$1"', 'sh', join(CNI_PLUGINS, 'bridge')]))
    missing.push('containernetworking-plugins');
  if (missing.length > 0) return `needs the Debian packages ${missing.join(' ')}`;
  const spaces = ['--mount', '--net', '--pid', '--cgroup', '--fork', 'true'];
  if (spawnSync('unshare', spaces).status !== 0) return 'needs namespaces of its own';
  return noGo();
}

/**
 * The programs, which are built on first use. That takes about 40 minutes on two CPUs, and the results are cached in
 * `XDG_CACHE_HOME`.
 * @throws if one of them cannot be built
 */
export async function nodePrograms(): Promise<NodePrograms> {
  const controlPlane = await clusterPrograms();
  const others = await programsOf(join(import.meta.dirname, 'programs'), more);
  const coredns = pinnedGoProgram('coredns', join(import.meta.dirname, 'coredns'));
  return { ...controlPlane, ...others, coredns, helm: helmProgram() };
}
