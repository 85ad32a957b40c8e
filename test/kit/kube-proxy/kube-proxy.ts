/** Gets the rules from a real kube-proxy, built from its public module, to compare them with ours. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const source = import.meta.dirname;

/** A cluster as kube-proxy sees it. */
export interface ProxiedCluster {
  readonly mode: 'iptables' | 'nftables';
  readonly family: 'IPv4' | 'IPv6';
  readonly node: string;
  readonly nodeIP: string;
  readonly zone: string;
  readonly clusterCIDR: string;
  readonly masqueradeAll: boolean;
  readonly localhostNodePorts: boolean;
  readonly nodePortAddresses: readonly string[];
  readonly services: readonly object[];
  readonly slices: readonly object[];
}

/** The rules that kube-proxy wrote for a cluster. */
export interface ProxyRules {
  readonly text: string;
  /** `TABLE CHAIN ["-m",…]` for each rule that it inserted into a kernel chain, with the last rule first. */
  readonly jumps: readonly string[] | null;
  readonly tookMs: number;
  readonly error: string;
}

/** The reason why no real kube-proxy is available, or null if one is. */
export function noKubeProxy(): string | null {
  if (spawnSync('go', ['version']).status !== 0) return 'go is not installed';
  if (spawnSync('nft', ['--version']).status !== 0) return 'nft is not installed';
  const { status } = spawnSync('unshare', ['-n', 'true']);
  return status === 0 ? null : 'no right to make a network namespace';
}

/** Builds the program once, which takes about three minutes, and caches it in `XDG_CACHE_HOME`. */
function program(): string {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const hash = createHash('sha256');
  for (const name of ['main.go', 'go.mod', 'go.sum']) hash.update(readFileSync(join(source, name)));
  const directory = join(caches, 'ndots', 'kube-proxy');
  const path = join(directory, hash.digest('hex').slice(0, 12));
  if (existsSync(path)) return path;
  mkdirSync(directory, { recursive: true });
  console.error(`building kube-proxy's rules (once, kept as ${path})`);
  const unfinished = `${path}.${process.pid}`;
  const { status, stderr } = spawnSync('go', ['build', '-o', unfinished, '.'], {
    cwd: source,
    encoding: 'utf8',
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  if (status !== 0) throw new Error(stderr);
  renameSync(unfinished, path);
  return path;
}

/** kube-proxy's rules for each cluster, obtained in a separate network namespace. */
export async function proxyRules(clusters: readonly ProxiedCluster[]): Promise<ProxyRules[]> {
  const directory = mkdtempSync(join(tmpdir(), 'kube-proxy-'));
  try {
    symlinkSync(join(source, 'nft.sh'), join(directory, 'nft'));
    const log = join(directory, 'nft.log');
    writeFileSync(log, '');
    const child = spawn('unshare', ['-n', program()], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        ...process.env,
        PATH: `${directory}:${process.env['PATH'] ?? ''}`,
        NFT_LOG: log,
        REAL_NFT: spawnSync('which', ['nft'], { encoding: 'utf8' }).stdout.trim(),
      },
    });
    child.stdin.end(clusters.map((cluster) => `${JSON.stringify(cluster)}\n`).join(''));
    const found: ProxyRules[] = [];
    for await (const line of createInterface(child.stdout)) {
      found.push(JSON.parse(line) as ProxyRules);
    }
    return found;
  } finally {
    rmSync(directory, { recursive: true });
  }
}
