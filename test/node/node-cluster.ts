/**
 * A one-node Kubernetes cluster created by kubeadm in separate namespaces, with a real kubelet, containerd, kube-proxy
 * and control plane.
 */
import { spawn } from 'node:child_process';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { start, type Child } from '../kit/child.ts';
import { nodeImages } from './node-images.ts';
import { CNI_PLUGINS, nodePrograms, type NodePrograms } from './node-programs.ts';
import {
  cniConfig,
  containerdConfig,
  kubeadmConfig,
  upstreamCorefile,
  type ProxyMode,
} from './node-settings.ts';
import { NodeSpace, type NodePids, type RanInside } from './node-space.ts';
import { say, until } from './progress.ts';

const KUBECONFIG = '/etc/kubernetes/admin.conf';
const CHECKOUT = resolve(import.meta.dirname, '../..');
const NDOTS = join(CHECKOUT, 'bin/ndots');

/** The fields of a pod that tests read. */
export interface PodState {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly startTime?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly lastTransitionTime: string;
    }[];
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly image: string;
      readonly ready: boolean;
      readonly restartCount: number;
      readonly containerID?: string;
      readonly state: Readonly<Record<string, { readonly reason?: string } | undefined>>;
    }[];
  };
}

/**
 * The cluster, until it is disposed of:
 *
 * await using node = await NodeCluster.start();
 * await node.kubectl('-n', 'kube-system', 'rollout', 'status', 'deployment/coredns');
 */
export class NodeCluster implements AsyncDisposable {
  readonly space: NodeSpace;
  readonly #programs: NodePrograms;

  private constructor(space: NodeSpace, programs: NodePrograms) {
    this.space = space;
    this.#programs = programs;
  }

  /** Builds missing programs, then starts the cluster with kubeadm's CoreDNS and the objects in `shop.yaml`. */
  static async start(mode: ProxyMode = 'iptables', pids: NodePids = 'own'): Promise<NodeCluster> {
    const programs = await nodePrograms();
    const space = await NodeSpace.make(pids);
    const node = new NodeCluster(space, programs);
    try {
      await node.#begin(mode);
      return node;
    } catch (error) {
      const log = node.log('kubelet').slice(-3000);
      await node[Symbol.asyncDispose]();
      throw log === '' ? error : new Error(`${String(error)}\nthe kubelet's log ends:\n${log}`);
    }
  }

  async #begin(mode: ProxyMode): Promise<void> {
    const { directory } = this.space;
    mkdirSync(join(directory, 'logs'));
    const { file, sandbox } = await nodeImages(this.#programs, directory);
    cpSync(CNI_PLUGINS, join(directory, 'cni'), { recursive: true });
    for (const [name, text] of Object.entries({
      'containerd.toml': containerdConfig(sandbox),
      'kubeadm.yaml': kubeadmConfig(mode),
      '10-pods.conflist': cniConfig,
      'upstream.Corefile': upstreamCorefile,
    }))
      writeFileSync(join(directory, name), text);
    const copy = `cp "$1"/cni/* /opt/cni/bin/ && cp "$1"/10-pods.conflist /etc/cni/net.d/`;
    await this.space.must(['sh', '-c', copy, 'sh', directory]);
    this.#serve('upstream', [
      this.#programs.coredns,
      '-conf',
      join(directory, 'upstream.Corefile'),
    ]);
    this.#serve('containerd', ['containerd', '-c', join(directory, 'containerd.toml')]);
    await until('containerd', async () => {
      const { code, err } = await this.space.run(['ctr', 'version']);
      return code === 0 ? null : err;
    });
    say('importing the images into containerd');
    await this.space.must(['ctr', '-n', 'k8s.io', 'images', 'import', '--all-platforms', file], {
      timeoutMs: 600_000,
    });
    this.#serve('kubelet', [join(import.meta.dirname, 'kubelet.sh'), this.#programs.kubelet]);
    say('kubeadm init');
    await this.space.must(
      [
        ...[this.#programs.kubeadm, 'init', '--config', join(directory, 'kubeadm.yaml')],
        ...['--ignore-preflight-errors=all', '--skip-token-print'],
      ],
      { timeoutMs: 600_000 },
    );
    await this.kubectl('apply', '-f', join(import.meta.dirname, 'shop.yaml'));
    await this.rolledOut('kube-system', 'daemonset/kube-proxy');
    await this.rolledOut('kube-system', 'deployment/coredns');
    for (const each of ['deployment/web', 'statefulset/db', 'deployment/client'])
      await this.rolledOut('shop', each);
    say('the cluster is up');
  }

  /** Starts a program on the node and writes its output to a log file. */
  #serve(name: string, words: readonly string[]): void {
    const log = openSync(join(this.space.directory, 'logs', name), 'a');
    const [program = '', ...rest] = this.space.inside(words);
    spawn(program, rest, { stdio: ['ignore', log, log] });
    closeSync(log);
  }

  /** The output of a program on the node, such as `kubelet`, `containerd` or `upstream`. */
  log(name: string): string {
    try {
      return readFileSync(join(this.space.directory, 'logs', name), 'utf8');
    } catch {
      return '';
    }
  }

  /**
   * Runs kubectl as the administrator.
   * @returns its output
   * @throws an error with kubectl's message if it fails
   */
  kubectl(...words: readonly string[]): Promise<string> {
    return this.kubectlWith('', ...words);
  }

  /** Does the same with standard input. */
  kubectlWith(input: string, ...words: readonly string[]): Promise<string> {
    return this.space.must(this.kubectlWords(...words), { input, timeoutMs: 300_000 });
  }

  /** The words of a kubectl command that will be run on the node. */
  kubectlWords(...words: readonly string[]): readonly string[] {
    return [this.#programs.kubectl, '--kubeconfig', KUBECONFIG, ...words];
  }

  /** Does the same, accepting any exit code. */
  tryKubectl(...words: readonly string[]): Promise<RanInside> {
    return this.space.run(this.kubectlWords(...words));
  }

  /** Runs this checkout's `ndots` on the node as the cluster's administrator. */
  ndots(words: readonly string[], timeoutMs = 120_000): Promise<RanInside> {
    const env = { KUBECONFIG, PATH: this.#path };
    return this.space.run([NDOTS, ...words], { env, timeoutMs });
  }

  /**
   * Does the same as `kubectl ndots`. Standard installations add a link with the plug-in's name to a directory on the
   * PATH.
   */
  kubectlNdots(...words: readonly string[]): Promise<RanInside> {
    const plugins = join(this.space.directory, 'plugins');
    const link = join(plugins, 'kubectl-ndots');
    mkdirSync(plugins, { recursive: true });
    if (!existsSync(link)) symlinkSync(NDOTS, link);
    const env = { KUBECONFIG, PATH: `${plugins}:${this.#path}` };
    return this.space.run([this.#programs.kubectl, 'ndots', ...words], { env });
  }

  /** Starts this checkout's `ndots` on the node as the cluster's administrator. */
  startNdots(words: readonly string[]): Child {
    const env = { KUBECONFIG, PATH: this.#path };
    return start(`ndots ${words[0]}`, this.space.inside([NDOTS, ...words], env));
  }

  /**
   * Runs a script from a page on the node as its administrator. It runs in the root of this checkout, with kubectl,
   * helm and ndots.
   * @throws an error with the script's message if it fails
   */
  script(text: string): Promise<string> {
    const env = { KUBECONFIG, PATH: this.#path, HOME: this.space.directory };
    const words = ['sh', '-ec', `cd "$1"\n${text}`, 'sh', CHECKOUT];
    return this.space.must(words, { env, timeoutMs: 300_000 });
  }

  get #path(): string {
    const { kubectl, helm } = this.#programs;
    const places = [kubectl, helm, NDOTS, process.execPath].map((file) => join(file, '..'));
    return [...places, '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'].join(':');
  }

  async rolledOut(namespace: string, what: string, limitMs = 300_000): Promise<void> {
    await until(
      `${what} in ${namespace}`,
      async () => {
        const { code, out, err } = await this.tryKubectl(
          ...['-n', namespace, 'rollout', 'status', what, '--timeout=10s'],
        );
        return code === 0 ? null : `${out.trim().split('\n').at(-1)} ${err.trim()}`;
      },
      limitMs,
    );
  }

  /** Copies the profiles from deploy/seccomp to the place where manifests expect them. */
  async putSeccompProfiles(): Promise<void> {
    const places = [join(CHECKOUT, 'deploy/seccomp'), '/var/lib/kubelet/seccomp/ndots'];
    await this.space.must(['sh', '-ec', 'mkdir -p "$2"; cp "$1"/*.json "$2"', 'sh', ...places]);
  }

  /** The pods that match a label selector, oldest first, without terminating ones. */
  async pods(namespace: string, selector: string): Promise<readonly PodState[]> {
    const text = await this.kubectl(
      ...['-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json'],
      '--sort-by=.metadata.creationTimestamp',
    );
    const { items } = JSON.parse(text) as {
      items: readonly (PodState & { readonly metadata: { readonly deletionTimestamp?: string } })[];
    };
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  /** The process ID of a pod's first container in the node's process namespace. */
  async pidOf(namespace: string, selector: string, at = 0): Promise<number> {
    const pod = (await this.pods(namespace, selector))[at];
    const id = pod?.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '');
    const tasks = await this.space.must(['ctr', '-n', 'k8s.io', 'tasks', 'ls']);
    const line = tasks.split('\n').find((each) => each.split(/\s+/)[0] === id);
    if (id === undefined || line === undefined)
      throw new Error(`no process of a pod ${selector} in ${namespace}`);
    return Number(line.split(/\s+/)[1]);
  }

  /** Runs a command with a process's files and network. If `files` is false, it sees this machine's files. */
  async inPod(pid: number, words: readonly string[], files = true): Promise<RanInside> {
    const spaces = files ? ['--mount', '--net'] : ['--net'];
    return this.space.run(['nsenter', '-t', String(pid), ...spaces, ...words]);
  }

  /** Starts a program from this machine in a process's network. */
  startInPod(name: string, pid: number, words: readonly string[]): Child {
    return start(name, this.space.inside(['nsenter', '-t', String(pid), '--net', ...words]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.space[Symbol.asyncDispose]();
  }
}
