import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start, type Child } from './child.ts';
import { freePorts } from './serve-process.ts';

/** The reason why the real API server cannot be run here; null: it can. */
export function noRealApiServer(): string | false {
  const missing = ['etcd', 'kube-apiserver'].filter(
    (program) => spawnSync('which', [program]).status !== 0,
  );
  return missing.length === 0
    ? false
    : `${missing.join(' and ')} not on PATH: build them from the Go modules go.etcd.io/etcd/server/v3 and k8s.io/kubernetes`;
}

const token = 'test-token';

/** kube-apiserver and etcd on loopback, without controllers: what tests create is what is there. */
export class RealApiServer {
  readonly kubeconfig: string;
  readonly #folder: string;
  readonly #ports: readonly number[];
  #children: Child[] = [];

  private constructor(folder: string, ports: readonly number[]) {
    this.#folder = folder;
    this.#ports = ports;
    this.kubeconfig = join(folder, 'kubeconfig');
    writeFileSync(join(folder, 'tokens.csv'), `${token},admin,admin,system:masters\n`);
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
      publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
    });
    writeFileSync(join(folder, 'service-accounts.key'), privateKey);
    writeFileSync(
      this.kubeconfig,
      JSON.stringify({
        'current-context': 'test',
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
        clusters: [
          {
            name: 'test',
            cluster: {
              server: `https://127.0.0.1:${ports[2]}`,
              'insecure-skip-tls-verify': true,
            },
          },
        ],
        users: [{ name: 'test', user: { token } }],
      }),
    );
  }

  static async start(): Promise<RealApiServer> {
    const folder = mkdtempSync(join(tmpdir(), 'ndots-apiserver-'));
    const made = new RealApiServer(folder, await freePorts(3));
    try {
      await made.up();
    } catch (error) {
      await made.end();
      throw error;
    }
    return made;
  }

  /** Starts both, and waits until they are ready. */
  async up(): Promise<void> {
    const [client, peer, secure] = this.#ports;
    const file = (name: string): string => join(this.#folder, name);
    this.#children = [
      start('etcd', [
        'etcd',
        ...['--data-dir', file('etcd'), '--logger', 'zap', '--unsafe-no-fsync'],
        ...['--listen-client-urls', `http://127.0.0.1:${client}`],
        ...['--advertise-client-urls', `http://127.0.0.1:${client}`],
        ...['--listen-peer-urls', `http://127.0.0.1:${peer}`],
        ...['--initial-advertise-peer-urls', `http://127.0.0.1:${peer}`],
        ...['--initial-cluster', `default=http://127.0.0.1:${peer}`],
      ]),
      start('kube-apiserver', [
        'kube-apiserver',
        `--etcd-servers=http://127.0.0.1:${client}`,
        '--bind-address=127.0.0.1',
        // It does without a default route then; nobody is told this address.
        '--advertise-address=192.0.2.1',
        `--secure-port=${secure}`,
        `--cert-dir=${file('certs')}`,
        `--token-auth-file=${file('tokens.csv')}`,
        '--authorization-mode=AlwaysAllow',
        '--service-cluster-ip-range=10.96.0.0/16',
        '--service-account-issuer=https://kubernetes.default.svc',
        `--service-account-key-file=${file('service-accounts.key')}`,
        `--service-account-signing-key-file=${file('service-accounts.key')}`,
        '--disable-admission-plugins=ServiceAccount',
        '--endpoint-reconciler-type=none',
      ]),
    ];
    for (let waited = 0; !(await this.#isReady()); waited++) {
      if (waited > 120)
        throw new Error(`never ready:\n${this.#children[1]!.output().slice(-3000)}`);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }

  /** Ends both at once: in order it would take a minute. */
  async down(): Promise<void> {
    for (const child of this.#children.toReversed()) {
      child.signal('SIGKILL');
      await child.exitCode;
    }
    this.#children = [];
  }

  /** Puts the database's files aside; both must be down. */
  backup(): void {
    cpSync(join(this.#folder, 'etcd'), join(this.#folder, 'backup'), { recursive: true });
  }

  /** Puts them back: the database has the versions of then again. Both must be down. */
  restore(): void {
    rmSync(join(this.#folder, 'etcd'), { recursive: true });
    cpSync(join(this.#folder, 'backup'), join(this.#folder, 'etcd'), { recursive: true });
  }

  /** One request of the API; the body comes back as it is. @throws Error if it is refused */
  request(method: string, path: string, body: object | null = null): Promise<string> {
    return new Promise((resolve, reject) => {
      const request = https.request(
        {
          ...{ host: '127.0.0.1', port: this.#ports[2], method, path, agent: false },
          rejectUnauthorized: false,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        },
        (reply) => {
          let text = '';
          reply.on('data', (piece: Buffer) => (text += piece.toString()));
          reply.on('end', () => {
            if (reply.statusCode! < 300) resolve(text);
            else reject(new Error(`${method} ${path}: ${reply.statusCode} ${text}`));
          });
        },
      );
      request.on('error', reject);
      request.end(body === null ? '' : JSON.stringify(body));
    });
  }

  async createService(name: string, clusterIP: string): Promise<void> {
    await this.request('POST', '/api/v1/namespaces/default/services', {
      metadata: { name },
      spec: { clusterIP, ports: [{ name: 'http', port: 80 }] },
    });
  }

  async deleteService(name: string): Promise<void> {
    await this.request('DELETE', `/api/v1/namespaces/default/services/${name}`);
  }

  async end(): Promise<void> {
    await this.down();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #isReady(): Promise<boolean> {
    try {
      await this.request('GET', '/readyz');
      await this.request('GET', '/api/v1/namespaces/default');
      return true;
    } catch {
      return false;
    }
  }
}
