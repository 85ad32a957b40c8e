/** A node's namespaces and control groups, still empty. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { groupsNamed, groupV2, hierarchies, makeGroups } from './control-group.ts';
import { nodeDirectory, record, remove, removeLeftovers, type NodeRecord } from './leftovers.ts';
import { NODE_ADDRESS, UPSTREAM_ADDRESS } from './node-settings.ts';
import { until } from './progress.ts';

/** A command's output and exit code. */
export interface RanInside {
  /** The exit code, or null if it was killed. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * The process namespace of a node: its own, or this machine's. BPF programs see process IDs of the machine's namespace
 * only. A node whose pods load them needs that one, like a real node.
 */
export type NodePids = 'own' | 'machine';

/**
 * The namespaces that a node runs in (mount, network, process, control group, IPC and host name), and its own control
 * groups. When the process that created it ends for any reason, so do all processes in it.
 */
export class NodeSpace implements AsyncDisposable {
  /** The directory that the node writes to. */
  readonly directory: string;
  readonly #record: NodeRecord;
  readonly #holder: ChildProcess;
  #first = 0;

  private constructor(node: NodeRecord, pids: NodePids) {
    this.#record = node;
    this.directory = nodeDirectory(node.id);
    makeGroups(node.groups);
    if (pids === 'machine') killWithUs(node.groups);
    const spaces = ['--mount', '--net', '--cgroup', '--ipc', '--uts'];
    if (pids === 'own') spaces.push('--pid');
    const mounts = hierarchies().map(({ name, option }) => `${name}:${option ?? ''}`);
    this.#holder = spawn(
      'sh',
      this.#joined([
        // The kernel kills it when this process exits, along with all processes in its own process namespace.
        ...['setpriv', '--pdeathsig', 'KILL'],
        ...['unshare', ...spaces, '--fork', '--kill-child', '--propagation', 'private'],
        ...['sh', join(import.meta.dirname, 'first-process.sh')],
        ...[this.directory, NODE_ADDRESS, UPSTREAM_ADDRESS, ...mounts],
      ]),
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
  }

  /**
   * Removes anything that killed runs left behind, then creates a new space.
   * @throws an error with the first process's output
   */
  static async make(pids: NodePids = 'own'): Promise<NodeSpace> {
    await removeLeftovers();
    const id = randomBytes(4).toString('hex');
    const space = new NodeSpace(record(id, groupsNamed(`ndots-node-${id}`)), pids);
    try {
      await space.#begin();
      return space;
    } catch (error) {
      await space[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #begin(): Promise<void> {
    let out = '';
    let err = '';
    this.#holder.stdout!.on('data', (text: Buffer) => (out += text.toString()));
    this.#holder.stderr!.on('data', (text: Buffer) => (err += text.toString()));
    await until(
      'the namespaces of the node',
      () => {
        if (this.#holder.exitCode !== null || this.#holder.signalCode !== null)
          throw new Error(`the namespaces of the node cannot be made: ${err}`);
        return out.includes('ready') ? null : err;
      },
      60_000,
    );
    const holder = this.#holder.pid!;
    const [first] = readFileSync(`/proc/${holder}/task/${holder}/children`, 'utf8').split(' ');
    this.#first = Number(first);
  }

  /** Arguments for `sh` that make it join the control groups and then execute these words. */
  #joined(words: readonly string[]): string[] {
    const join = this.#record.groups.map((_, at) => `echo $$ > "\${${at + 1}}/cgroup.procs"`);
    const { length } = this.#record.groups;
    const script = `${join.join('\n')}\nshift ${length}\nexec "$@"`;
    return ['-ec', script, 'sh', ...this.#record.groups, ...words];
  }

  /** The words with which a process on this machine runs a command inside the namespaces. */
  inside(words: readonly string[], env: Readonly<Record<string, string>> = {}): string[] {
    const spaces = ['--mount', '--net', '--pid', '--cgroup', '--ipc', '--uts'];
    const entered = ['nsenter', '-t', String(this.#first), ...spaces];
    const variables = Object.entries({ PATH, HOME: '/root', ...env });
    return [
      'sh',
      ...this.#joined([
        ...entered,
        // nsenter is the command's parent, so when nsenter is killed, the command must exit too.
        ...['setpriv', '--pdeathsig', 'TERM'],
        ...['env', '-i', ...variables.map(([name, value]) => `${name}=${value}`)],
        ...words,
      ]),
    ];
  }

  /** Runs a command inside the namespaces to completion without blocking this process. */
  run(
    words: readonly string[],
    options: {
      readonly input?: string | Buffer;
      readonly env?: Readonly<Record<string, string>>;
      readonly timeoutMs?: number;
    } = {},
  ): Promise<RanInside> {
    const [program = '', ...rest] = this.inside(words, options.env);
    return new Promise((resolve, reject) => {
      const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'pipe'] });
      const [out, err]: [Buffer[], Buffer[]] = [[], []];
      child.stdout.on('data', (data: Buffer) => out.push(data));
      child.stderr.on('data', (data: Buffer) => err.push(data));
      child.stdin.on('error', () => undefined);
      child.stdin.end(options.input ?? '');
      const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 120_000);
      child.on('error', reject);
      child.on('close', (code) => {
        clearTimeout(timer);
        resolve({ code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() });
      });
    });
  }

  /**
   * Does the same.
   * @throws an error with the command's message if it fails
   */
  async must(...[words, options]: Parameters<NodeSpace['run']>): Promise<string> {
    const { code, out, err } = await this.run(words, options);
    if (code === 0) return out;
    throw new Error(`${words.join(' ').slice(0, 200)}\nended with ${code}:\n${err}${out}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holder.kill('SIGKILL');
    await remove(this.#record);
  }
}

/**
 * Kills all processes in these groups when this process ends. Nothing else would end those that do not have a process
 * namespace of their own.
 */
function killWithUs(groups: readonly string[]): void {
  const kill = join(groupV2(groups), 'cgroup.kill');
  // Its input ends with this process. In its own session, it survives a Ctrl-C.
  const script = 'cat > /dev/null; if [ -e "$1" ]; then echo 1 > "$1"; fi';
  const watcher = spawn('sh', ['-c', script, 'sh', kill], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  watcher.unref();
}

/** Commands that list the parts of this machine's network that are outside all nodes. */
const networkParts: readonly (readonly string[])[] = [
  ['ip', '-br', 'link'],
  ['ip', '-br', 'address'],
  ['ip', 'rule'],
  ['ip', 'route', 'show', 'table', 'all'],
  ['iptables-save'],
  ['nft', '-s', 'list', 'ruleset'],
  ['sysctl', '-a', '--pattern', '^net\\.'],
];

/** Maps each of these commands to the network settings that it lists. */
export const networkOutside = (): ReadonlyMap<string, readonly string[]> =>
  new Map(
    networkParts.map(([program = '', ...rest]) => {
      const { stdout } = spawnSync(program, rest, { encoding: 'utf8' });
      // Comments include the time, chains include packet counts, and the kernel counts connections.
      const lines = stdout.replaceAll(/^#.*$|\[\d+:\d+\]|^.*_count = .*$/gm, '').split('\n');
      return [program === 'ip' ? `ip ${rest.at(-1)}` : program, lines];
    }),
  );

/** The settings that have changed since then: `-` and the earlier line, or `+` and the current one. */
export function changedOutside(earlier: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const present = networkOutside();
  return [...earlier].flatMap(([part, before]) => {
    const now = present.get(part)!;
    const [gone, added] = [new Set(before), new Set(now)];
    for (const line of before) added.delete(line);
    for (const line of now) gone.delete(line);
    const keys = new Set(before.map((line) => line.split(' = ')[0]));
    // Loading a kernel module adds its settings.
    const fresh = (line: string): boolean => part === 'sysctl' && !keys.has(line.split(' = ')[0]);
    return [
      ...[...gone].map((line) => `- ${part}: ${line}`),
      ...[...added].filter((line) => !fresh(line)).map((line) => `+ ${part}: ${line}`),
    ];
  });
}
