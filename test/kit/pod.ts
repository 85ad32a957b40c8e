/** A network namespace that acts as a pod. */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { start, type Child } from './child.ts';

/** The reason why namespaces cannot be created here, or null if they can. */
export function noNamespaces(): string | null {
  if (process.getuid?.() !== 0) return 'needs root for network namespaces';
  const { status } = spawnSync('unshare', ['-n', '-m', 'true']);
  return status === 0 ? null : 'network namespaces are not allowed here';
}

/**
 * A pod for a program. It has its own network (only loopback, which is up) and its own files at absolute paths
 * (`/etc/resolv.conf`, the service account …). Bind mounts place them over the machine's files for this pod only.
 */
export class Pod {
  readonly #holder: ChildProcess;
  readonly #directory: string;
  readonly #children: Child[] = [];

  private constructor(holder: ChildProcess, directory: string) {
    this.#holder = holder;
    this.#directory = directory;
  }

  static make(files: Readonly<Record<string, string>> = {}): Pod {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-pod-'));
    const holder = spawn('unshare', ['-n', '-m', '--propagation', 'private', 'sleep', '1000'], {
      stdio: 'ignore',
    });
    const pod = new Pod(holder, directory);
    // The holder enters its namespaces shortly after it starts.
    for (
      let tries = 0;
      spawnSync('sh', [
        '-c',
        `[ "$(readlink /proc/${holder.pid}/ns/net)" != "$(readlink /proc/self/ns/net)" ]`,
      ]).status !== 0;
      tries++
    ) {
      if (tries > 200) throw new Error('the namespace did not come up');
      execFileSync('sleep', ['0.01']);
    }
    pod.exec('ip', 'link', 'set', 'lo', 'up');
    for (const [path, text] of Object.entries(files)) pod.#lay(path, text);
    return pod;
  }

  /** Places a file at an absolute path. Missing directories are created for this pod only. */
  #lay(path: string, text: string): void {
    const own = join(this.#directory, path);
    const layers = join(this.#directory, '.layers');
    mkdirSync(dirname(own), { recursive: true });
    writeFileSync(own, text);
    // A second overlay on a directory would hide the mounts in the first one.
    this.exec(
      'sh',
      '-c',
      `
      d=$(dirname '${path}')
      is_ours() {
        p=$d
        while [ "$p" != / ]; do grep -qxF "$p" '${layers}' 2>/dev/null && return 0; p=$(dirname "$p"); done
        return 1
      }
      if [ ! -d "$d" ]; then
        up=$d; while [ ! -d "$(dirname "$up")" ]; do up=$(dirname "$up"); done
        mount -t tmpfs none "$(dirname "$up")" && mkdir -p "$d" && dirname "$up" >> '${layers}'
      elif [ ! -e '${path}' ] && ! is_ours; then
        mkdir '${own}.upper' '${own}.work'
        mount -t overlay overlay -o "lowerdir=$d,upperdir=${own}.upper,workdir=${own}.work" "$d" && echo "$d" >> '${layers}'
      fi
      [ -e '${path}' ] || touch '${path}'
      mount --bind '${own}' "$(readlink -f '${path}')"`,
    );
  }

  #enter(words: readonly string[]): string[] {
    return ['nsenter', '-t', String(this.#holder.pid), '-n', '-m', '--', ...words];
  }

  /** Runs a program in the pod to completion and returns its output. */
  exec(...words: string[]): string {
    const [program, ...rest] = this.#enter(words);
    return execFileSync(program!, rest, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  start(name: string, words: readonly string[], env: NodeJS.ProcessEnv = process.env): Child {
    const child = start(name, this.#enter(words), { env });
    this.#children.push(child);
    return child;
  }

  async end(): Promise<void> {
    for (const child of this.#children.toReversed()) await child.stop();
    this.#holder.kill('SIGKILL');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
