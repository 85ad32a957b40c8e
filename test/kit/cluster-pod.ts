/** A pod that runs ndots, in its own namespaces. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Authority } from './authority.ts';
import { printed, type Child } from './child.ts';
import { everyCluster, joinObjects, type ClusterObjects } from './cluster-objects.ts';
import type { ClusterCommand, ClusterServerSettings } from './cluster-server.ts';
import { dig, missing, plain, type Dug } from './dig.ts';
import { noNamespaces, Pod } from './pod.ts';

/** The addresses, which are the same in every such cluster. */
export const PLACE = {
  api: '10.96.0.1',
  /**
   * The DNS service. Its address is on the DNS server's own loopback interface, because kube-proxy would send its
   * packets to that pod.
   */
  dns: '10.96.0.10',
  pod: '172.17.0.2',
  node: '172.17.0.1',
  /** The node's name server: Unbound. */
  upstream: '10.0.2.3',
} as const;

/** The contents of the cluster and the node. */
export interface ClusterParts {
  /** Services in addition to `kubernetes` and `kube-dns`. */
  readonly objects?: ClusterObjects;
  /** The data of the node's name server, as lines in the root zone without its SOA. */
  readonly zone?: readonly string[];
  /** The DNS server's `/etc/resolv.conf`. By default, it points to the node's name server. */
  readonly resolvConf?: string;
  /** Other files in the DNS server's pod, by absolute path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Addresses of client pods, all on the node. */
  readonly clients?: readonly string[];
  /** True if the pod has a service account and the API server's address. True by default. */
  readonly inCluster?: boolean;
}

// Programs in a pod start in the root directory, so all paths must be absolute.
const program = join(import.meta.dirname, '../../bin/ndots');

const tokenFile = '/var/run/secrets/kubernetes.io/serviceaccount/token';
const caFile = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt';

/** Why such a cluster cannot be created here, or false if it can. For a test's `skip` option. */
export function noCluster(): string | false {
  return noNamespaces() ?? missing('ip', 'unbound', 'dig', 'curl') ?? false;
}

/**
 * A cluster with everything that the DNS server communicates with: its pod, the API server (with TLS and a token), the
 * name server in `/etc/resolv.conf`, and client pods on another node. Each is a separate program.
 */
export class ClusterPod {
  readonly dnsPod: Pod;
  readonly node: Pod;
  readonly #directory: string;
  readonly #server: Child;
  readonly #env: NodeJS.ProcessEnv;
  readonly #servers: Child[] = [];
  #commands = 0;

  private constructor(parts: ClusterParts) {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-cluster-'));
    const authority = Authority.make('ndots test CA');
    const inCluster = parts.inCluster ?? true;
    this.#directory = directory;
    this.node = Pod.make();
    this.dnsPod = Pod.make({
      ...parts.files,
      '/etc/resolv.conf': parts.resolvConf ?? `nameserver ${PLACE.upstream}\n`,
      ...(inCluster ? { [tokenFile]: 'token-1\n', [caFile]: authority.cert } : {}),
    });
    const address = { KUBERNETES_SERVICE_HOST: PLACE.api, KUBERNETES_SERVICE_PORT: '443' };
    this.#env = { PATH: process.env['PATH'], ...(inCluster ? address : {}) };
    addAddresses(this.node, 'lo', [PLACE.api, PLACE.upstream]);
    addAddresses(this.dnsPod, 'lo', [PLACE.dns]);
    const settings: ClusterServerSettings = {
      address: PLACE.api,
      port: 443,
      tls: authority.issue('kube-apiserver', [PLACE.api, 'kubernetes.default.svc']),
      tokens: ['token-1'],
      objects: joinObjects(everyCluster, parts.objects ?? {}),
    };
    const file = this.file('cluster.json', JSON.stringify(settings));
    this.#server = this.node.start('API server', [
      process.execPath,
      join(import.meta.dirname, 'cluster-server.ts'),
      file,
    ]);
    startUnbound(this.node, directory, parts.zone ?? []);
  }

  static async make(parts: ClusterParts = {}): Promise<ClusterPod> {
    const cluster = new ClusterPod(parts);
    try {
      await printed(cluster.#server, /^listening/m, 15_000);
      // By now the program is inside the namespace, so its process ID identifies the other end of the link.
      cluster.#wire(cluster.#server.pid, parts.clients ?? []);
    } catch (error) {
      await cluster.end();
      throw error;
    }
    return cluster;
  }

  #wire(nodePid: number, clients: readonly string[]): void {
    this.dnsPod.exec(
      'ip',
      'link',
      'add',
      'eth0',
      'type',
      'veth',
      'peer',
      'name',
      'veth0',
      'netns',
      String(nodePid),
    );
    this.dnsPod.exec(
      'sh',
      '-c',
      `ip addr add ${PLACE.pod}/16 dev eth0 && ip link set eth0 up && ip route add default via ${PLACE.node}`,
    );
    this.node.exec(
      'sh',
      '-c',
      `ip addr add ${PLACE.node}/16 dev veth0 && ip link set veth0 up && ip route add ${PLACE.dns} via ${PLACE.pod}`,
    );
    addAddresses(this.node, 'veth0', clients);
  }

  async end(): Promise<void> {
    // SIGTERM would take as long as lameduck.
    for (const server of this.#servers) server.signal('SIGKILL');
    await this.dnsPod.end();
    await this.node.end();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Writes a file for programs in the cluster and returns its path. */
  file(name: string, text: string): string {
    const path = join(this.#directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  /** Starts the server with the Corefile at this path and waits until it reports that it is serving. */
  async serve(corefile: string, ...words: readonly string[]): Promise<Child> {
    const child = this.start(corefile, ...words);
    await printed(child, /ndots-\d/, 20_000);
    return child;
  }

  /** Does the same without waiting. */
  start(corefile: string, ...words: readonly string[]): Child {
    const child = this.dnsPod.start(
      'ndots',
      [program, 'serve', '-conf', resolve(corefile), ...words],
      this.#env,
    );
    this.#servers.push(child);
    return child;
  }

  /** Runs the server in the pod until it exits without being stopped. */
  async refused(
    corefile: string,
    ...before: readonly string[]
  ): Promise<{ code: number | null; text: string }> {
    const child = this.dnsPod.start(
      'ndots',
      [...before, program, 'serve', '-conf', resolve(corefile)],
      this.#env,
    );
    const late = setTimeout(() => child.signal('SIGKILL'), 20_000);
    const code = await child.exitCode;
    clearTimeout(late);
    // Its last output may not have arrived yet.
    await new Promise((resolve) => setTimeout(resolve, 50));
    return { code, text: child.output() };
  }

  /**
   * Sends a query as a stub resolver would, without EDNS, from the node to the DNS service. The arguments are the same
   * as for dig.
   */
  ask(...words: readonly string[]): Dug {
    return dig(this.node, `@${PLACE.dns}`, ...plain, ...words);
  }

  /** Does the same from a client pod's address. */
  askFrom(client: string, ...words: readonly string[]): Dug {
    return this.ask('-b', client, ...words);
  }

  /** Repeats the query until the reply matches, and returns the last reply. */
  async askUntil(
    wanted: (dug: Dug) => boolean,
    words: readonly string[],
    limitMs = 10_000,
  ): Promise<Dug> {
    const end = performance.now() + limitMs;
    for (;;) {
      const dug = this.ask(...words);
      if (wanted(dug) || performance.now() > end) return dug;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** The body and status that a probe from the node gets from the DNS server, e.g. for `:8181/ready`. */
  page(portAndPath: string): { status: number; body: string } {
    return this.#curl(this.node, `http://${PLACE.pod}${portAndPath}`);
  }

  /** The same for a listener that is only available on the pod's loopback interface. */
  pageInside(portAndPath: string): { status: number; body: string } {
    return this.#curl(this.dnsPod, `http://127.0.0.1${portAndPath}`);
  }

  #curl(from: Pod, url: string): { status: number; body: string } {
    const text = from.exec('sh', '-c', `curl -s -m 5 -w '\\n%{http_code}' ${url} || true`);
    const at = text.lastIndexOf('\n');
    return { status: Number(text.slice(at + 1)), body: text.slice(0, at) };
  }

  /** Sends the API server a command and waits until it has been carried out. */
  async api(command: ClusterCommand): Promise<void> {
    const count = ++this.#commands;
    this.#server.tell(JSON.stringify(command));
    await printed(this.#server, new RegExp(`^done ${count}$`, 'm'), 10_000);
  }

  /** Renews the token, as the kubelet does about once an hour. */
  rotateToken(token: string): void {
    this.dnsPod.exec('sh', '-c', `printf '%s' '${token}' > ${tokenFile}`);
  }
}

function addAddresses(pod: Pod, device: string, addresses: readonly string[]): void {
  for (const address of addresses) pod.exec('ip', 'addr', 'add', `${address}/32`, 'dev', device);
}

/** Runs Unbound as the node's name server. The given lines are its only data. */
function startUnbound(node: Pod, directory: string, lines: readonly string[]): void {
  const zoneFile = join(directory, 'root.zone');
  const soa =
    '. 60 IN SOA a.root. hostmaster.root. 1 3600 600 86400 60\n. 60 IN NS a.root.\na.root. 60 IN A 10.0.2.3\n';
  writeFileSync(zoneFile, `${soa}${lines.join('\n')}\n`);
  const conf = join(directory, 'unbound.conf');
  writeFileSync(
    conf,
    `server:
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "${directory}"
  pidfile: ""
  use-syslog: no
  interface: ${PLACE.upstream}
  access-control: 0.0.0.0/0 allow
  module-config: "iterator"
  unblock-lan-zones: yes
  local-zone: "localhost." nodefault
  local-zone: "test." nodefault
  local-zone: "invalid." nodefault
  minimal-responses: yes
remote-control:
  control-enable: no
auth-zone:
  name: "."
  zonefile: "${zoneFile}"
  for-downstream: yes
  for-upstream: yes
  fallback-enabled: no
`,
  );
  node.start('unbound', ['unbound', '-d', '-c', conf]);
}

/** The text of a fixture in test/corefiles. */
export function corefileText(name: string): string {
  return readFileSync(join(import.meta.dirname, '../corefiles', name), 'utf8');
}
