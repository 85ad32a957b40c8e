/**
 * A fake kubelet that implements what ephemeral containers need. It starts containers added to its node's pods, reports
 * their status to the API server, and serves their logs as real kubelets do.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { KubeJson } from './apiserver/store.ts';
import { testCertificate, testKey } from './certificate.ts';
import type { Cluster } from './cluster/cluster.ts';

export const NODE = 'node-1';

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly securityContext?: object;
}

interface Pod extends KubeJson {
  readonly spec: { readonly ephemeralContainers?: readonly Container[] };
}

interface Running {
  readonly child: ChildProcess;
  readonly pieces: Buffer[];
  readonly ended: Promise<number>;
}

/** The pod, and how its containers are started. */
export interface KubeletParts {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly pod: string;
  /** The command that starts a container from an image, or null if there is no such image. */
  readonly command: (container: Container) => readonly string[] | null;
}

export class Kubelet implements AsyncDisposable {
  readonly #parts: KubeletParts;
  readonly #server: Server;
  readonly #running = new Map<string, Running>();
  readonly #states = new Map<string, object>();
  readonly containers: Container[] = [];
  #timer: NodeJS.Timeout | undefined;
  #busy: Promise<void> = Promise.resolve();

  private constructor(parts: KubeletParts) {
    this.#parts = parts;
    this.#server = createServer({ cert: testCertificate, key: testKey }, (request, response) => {
      const name = /^\/containerLogs\/[^/]+\/[^/]+\/([^/?]+)/.exec(request.url ?? '')?.[1] ?? '';
      const running = this.#running.get(name);
      if (running === undefined) return void response.writeHead(404).end();
      response.writeHead(200, { 'transfer-encoding': 'chunked' });
      response.write(Buffer.concat(running.pieces));
      for (const stream of [running.child.stdout!, running.child.stderr!])
        stream.on('data', (piece: Buffer) => void response.write(piece));
      return void running.ended.then(() => response.end());
    });
  }

  static async start(parts: KubeletParts): Promise<Kubelet> {
    const kubelet = new Kubelet(parts);
    await new Promise<void>((done) => kubelet.#server.listen(0, '127.0.0.1', done));
    const { port } = kubelet.#server.address() as AddressInfo;
    const { cluster } = parts;
    await cluster.put([{ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } }]);
    const status = {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    };
    const patch = ['patch', 'node', NODE, '--subresource=status', '--type=merge', '-p'];
    await cluster.kubectl(...patch, JSON.stringify({ status }));
    kubelet.#timer = setInterval(() => {
      kubelet.#busy = kubelet.#busy.then(() => kubelet.#look()).catch(() => undefined);
    }, 300);
    return kubelet;
  }

  async #look(): Promise<void> {
    const { cluster, namespace, pod, command } = this.#parts;
    const text = await cluster.kubectl('get', 'pod', pod, '-n', namespace, '-o', 'json');
    for (const container of (JSON.parse(text) as Pod).spec.ephemeralContainers ?? []) {
      if (this.#states.has(container.name)) continue;
      this.containers.push(container);
      const words = command(container);
      if (words === null)
        this.#states.set(container.name, {
          waiting: { reason: 'ErrImagePull', message: `${container.image}: not found` },
        });
      else this.#run(container, words);
    }
    await this.#tell();
  }

  #run({ name, env = [] }: Container, [program = '', ...words]: readonly string[]): void {
    const given = Object.fromEntries(env.map((each) => [each.name, each.value]));
    const child = spawn(program, words, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], ...given },
    });
    const pieces: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece: Buffer) => pieces.push(piece));
    const ended = new Promise<number>((resolve) => {
      child.on('close', (code) => resolve(code ?? 137));
    });
    this.#running.set(name, { child, pieces, ended });
    this.#states.set(name, { running: { startedAt: new Date().toISOString() } });
    void ended.then((exitCode) => this.#states.set(name, { terminated: { exitCode } }));
  }

  async #tell(): Promise<void> {
    if (this.#states.size === 0) return;
    const { cluster, namespace, pod } = this.#parts;
    const ephemeralContainerStatuses = [...this.#states].map(([name, state]) => ({
      name,
      state,
      image: 'ndots',
      imageID: '',
      ready: false,
      restartCount: 0,
    }));
    const patch = JSON.stringify({ status: { ephemeralContainerStatuses } });
    const words = ['patch', 'pod', pod, '-n', namespace, '--subresource=status', '--type=merge'];
    await cluster.kubectl(...words, '-p', patch);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#busy;
    for (const { child } of this.#running.values()) child.kill('SIGKILL');
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
