/** A real API server with its etcd. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Authority } from '../authority.ts';
import type { KubeJson } from '../apiserver/store.ts';
import { start, type Child } from '../child.ts';
import { freePorts } from '../free-ports.ts';
import { clusterPrograms, type ClusterPrograms, type OlderMinor } from './programs.ts';

/**
 * The user that sends a request. Users may do everything, unless permissions in `rbac.authorization.k8s.io` objects
 * apply.
 */
export type User = 'admin' | 'dns' | 'check' | 'webhook' | 'kuberhealthy';

/** Maps a user to the name used in RBAC objects. */
const userNames = {
  admin: 'admin,admin,system:masters',
  dns: 'system:serviceaccount:kube-system:coredns,dns',
  check: 'system:serviceaccount:kube-system:dns-ndots-check,check',
  webhook: 'system:serviceaccount:kube-system:dns-ndots-webhook,webhook',
  kuberhealthy: 'system:serviceaccount:kuberhealthy:kuberhealthy,kuberhealthy',
} as const;

/** An object that the API server refused, and the reason. */
export interface Refused {
  readonly kind: string;
  readonly name: string;
  readonly reason: string;
}

const START_MS = 120_000;

/**
 * A real control plane on loopback: etcd and kube-apiserver, without controllers, so that its objects are those of the
 * test. Service addresses are in 10.0.0.0/16 and fd00:10::/108. The API's own service has one from the latter.
 *
 *   await using cluster = await Cluster.start();
 *   await cluster.put(objects);
 *   await cluster.kubectl('delete', 'service', 'backend', '-n', 'shop');
 */
export class Cluster implements AsyncDisposable {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  readonly #programs: ClusterPrograms;
  readonly #directory: string;
  readonly #ports: { readonly api: number; readonly etcd: number; readonly peers: number };
  #authority = Authority.make('ndots test CA');
  #etcd: Child | null = null;
  #api: Child | null = null;

  private constructor(
    programs: ClusterPrograms,
    [api, etcd, peers]: readonly [number, number, number],
  ) {
    this.#programs = programs;
    this.#directory = mkdtempSync(join(tmpdir(), 'ndots-cluster-'));
    this.#ports = { api, etcd, peers };
    this.url = `https://127.0.0.1:${api}`;
    this.#writeIdentity();
  }

  /** @param minor an older minor version of Kubernetes, or null for the newest */
  static async start(minor: OlderMinor | null = null): Promise<Cluster> {
    const programs = await clusterPrograms(minor);
    const ports = await freePorts(3);
    const cluster = new Cluster(programs, ports);
    try {
      await cluster.startApiServer();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  #file(name: string): string {
    return join(this.#directory, name);
  }

  /** The CA that issued the API server's certificate, as a PEM file. */
  get authorityFile(): string {
    return this.#file('ca.crt');
  }

  /** The private key that signs service account tokens, as a PEM file. */
  get accountsKeyFile(): string {
    return this.#file('accounts.key');
  }

  /** Gives the API server a certificate from another CA the next time it starts. This kubectl trusts it. */
  renewAuthority(): void {
    this.#authority = Authority.make('ndots test CA, the next');
    const server = this.#authority.issue('kube-apiserver', ['127.0.0.1', 'localhost']);
    writeFileSync(this.#file('ca.crt'), this.#authority.cert);
    writeFileSync(this.#file('tls.crt'), server.cert);
    writeFileSync(this.#file('tls.key'), server.key);
  }

  #writeIdentity(): void {
    const server = this.#authority.issue('kube-apiserver', ['127.0.0.1', 'localhost']);
    const accounts = this.#authority.issue('service-accounts');
    const users = Object.entries(userNames).map(([user, names]) => {
      const [name, id, ...groups] = names.split(',');
      return [`token-of-${user}`, name, id, ...groups].join(',');
    });
    for (const [name, text] of Object.entries({
      'ca.crt': this.#authority.cert,
      'tls.crt': server.cert,
      'tls.key': server.key,
      'accounts.crt': accounts.cert,
      'accounts.key': accounts.key,
      'tokens.csv': `${users.join('\n')}\n`,
    }))
      writeFileSync(this.#file(name), text);
    for (const user of Object.keys(userNames) as User[])
      writeFileSync(this.kubeconfig(user), JSON.stringify(this.#config(user)));
  }

  kubeconfig(user: User): string {
    return this.#file(`${user}.kubeconfig`);
  }

  #config(user: User): object {
    const cluster = { server: this.url, 'certificate-authority': this.#file('ca.crt') };
    return {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': user,
      contexts: [{ name: user, context: { cluster: 'real', user } }],
      clusters: [{ name: 'real', cluster }],
      users: [{ name: user, user: { token: `token-of-${user}` } }],
    };
  }

  /** Starts the API server, and etcd if necessary, and waits until the API server is ready. */
  async startApiServer(): Promise<void> {
    const { api, etcd, peers } = this.#ports;
    const store = `http://127.0.0.1:${etcd}`;
    this.#etcd ??= start('etcd', [
      this.#programs.etcd,
      `--data-dir=${this.#file('etcd')}`,
      `--listen-client-urls=${store}`,
      `--advertise-client-urls=${store}`,
      `--listen-peer-urls=http://127.0.0.1:${peers}`,
      '--unsafe-no-fsync',
      '--log-level=error',
    ]);
    this.#api = start('kube-apiserver', [
      this.#programs['kube-apiserver'],
      `--etcd-servers=${store}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${api}`,
      `--tls-cert-file=${this.#file('tls.crt')}`,
      `--tls-private-key-file=${this.#file('tls.key')}`,
      `--token-auth-file=${this.#file('tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${this.#file('accounts.crt')}`,
      `--service-account-signing-key-file=${this.#file('accounts.key')}`,
      // IPv6 comes first because the API's own service uses the first address in the first range, and tests need
      // 10.0.0.1 for another.
      '--service-cluster-ip-range=fd00:10::/108,10.0.0.0/16',
      '--advertise-address=fd00::1',
      '--endpoint-reconciler-type=none',
      // Pods are created by tests, not by a controller that would have created an account for them.
      '--disable-admission-plugins=ServiceAccount',
    ]);
    const begin = performance.now();
    for (;;) {
      // The API server creates the default namespaces shortly after it reports that it is ready.
      const ready = await this.kubectl('get', '--raw', '/readyz')
        .then(() => this.kubectl('get', 'namespaces', 'default', 'kube-system', '-o', 'name'))
        .catch(() => null);
      if (ready !== null) return;
      const ended = await Promise.race([this.#api.exitCode, pause(250).then(() => 'runs')]);
      if (ended !== 'runs' || performance.now() - begin > START_MS) {
        const output = `${this.#api.output()}${this.#etcd.output()}`;
        throw new Error(`kube-apiserver is not ready:\n${output.slice(-4000)}`);
      }
    }
  }

  /** The CPU time of the running API server. */
  apiServerCpuSeconds(): number {
    return this.#api?.cpuSeconds() ?? 0;
  }

  /** Kills the API server, as a node failure would, while etcd keeps running. */
  async killApiServer(): Promise<void> {
    this.#api?.signal('SIGKILL');
    await this.#api?.exitCode;
    this.#api = null;
  }

  async #killEtcd(): Promise<void> {
    this.#etcd?.signal('SIGKILL');
    await this.#etcd?.exitCode;
    this.#etcd = null;
  }

  /** Copies all current objects. The API server is down in the meantime. */
  async backUp(): Promise<string> {
    const copy = mkdtempSync(this.#file('backup-'));
    await this.killApiServer();
    await this.#killEtcd();
    cpSync(this.#file('etcd'), copy, { recursive: true });
    await this.startApiServer();
    return copy;
  }

  /** Restores all objects, including their resource versions. The API server is down in the meantime. */
  async restore(copy: string): Promise<void> {
    await this.killApiServer();
    await this.#killEtcd();
    rmSync(this.#file('etcd'), { recursive: true });
    cpSync(copy, this.#file('etcd'), { recursive: true });
    await this.startApiServer();
  }

  /**
   * Runs kubectl as the administrator and returns its output.
   * @throws an error with kubectl's message if it fails
   */
  kubectl(...words: string[]): Promise<string> {
    return this.#run(words, null);
  }

  /**
   * Does the same, with text for standard input.
   * @throws an error with kubectl's message if it fails
   */
  kubectlWith(input: string, ...words: string[]): Promise<string> {
    return this.#run(words, input);
  }

  #run(words: readonly string[], input: string | null): Promise<string> {
    const home = this.#file('home');
    mkdirSync(home, { recursive: true });
    const env = { HOME: home, KUBECONFIG: this.kubeconfig('admin') };
    return new Promise((resolve, reject) => {
      const child = execFile(
        this.#programs.kubectl,
        words,
        { env, timeout: 60_000, maxBuffer: 1 << 26 },
        (error, out, complaints) => {
          if (error === null) resolve(out);
          else reject(new Error(complaints === '' ? error.message : complaints, { cause: out }));
        },
      );
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(input ?? '');
    });
  }

  /**
   * Creates or changes objects as `kubectl apply` does. It also sets pod status, which the API stores separately.
   * @returns the objects that the API server refuses
   */
  async put(objects: readonly KubeJson[]): Promise<readonly Refused[]> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    const words = ['apply', '--server-side', '--force-conflicts', '-f', '-'];
    const complaints = await this.#run(words, JSON.stringify(list)).then(
      () => '',
      (error: Error) => error.message,
    );
    const lines = complaints.split('\n');
    for (const { kind, metadata, status } of objects) {
      if (kind !== 'Pod' || status === undefined) continue;
      const { name, namespace = 'default' } = metadata;
      const patch = JSON.stringify({ status });
      const what = ['patch', 'pod', name, '-n', namespace, '--subresource=status'];
      await this.#run([...what, '--type=merge', '-p', patch], null).catch((error: Error) =>
        lines.push(...error.message.split('\n')),
      );
    }
    return lines
      .filter((line) => line.trim() !== '' && !line.startsWith('Warning: '))
      .map((line): Refused => {
        const found = /(\w+)(?:\.\S+)? "([^"]+)" is invalid: (.*)$/.exec(line);
        if (found === null) throw new Error(lines.join('\n'));
        const [, kind = '', name = '', reason = ''] = found;
        return { kind, name, reason };
      });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killApiServer();
    await this.#killEtcd();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
