/** Executes a Dockerfile's steps and runs the result. */
import { spawn, spawnSync, type ChildProcess, type SpawnSyncReturns } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, matchesGlob, relative, resolve } from 'node:path';
import {
  copied,
  parentOf,
  parseDockerfile,
  variablesOf,
  type Instruction,
  type Stage,
} from './dockerfile.ts';
import { confinementOf, type Confinement, type SecurityContext } from './security-context.ts';
import { debianFor, Emulation, type EmulatedCpu } from './emulation.ts';

/** The reason why a Dockerfile cannot be built here, or null if one can. */
export function noImages(): string | null {
  if (process.platform !== 'linux') return 'needs Linux';
  if (process.getuid?.() !== 0) return 'needs root, for mounts and chroot';
  const tried = spawnSync('unshare', ['-m', '-n', 'chroot', '/', 'setpriv', '--version']);
  return tried.status === 0 ? null : 'needs unshare, chroot and setpriv';
}

/** Thrown if a download failed, which is not the Dockerfile's fault. */
export class NoNetwork extends Error {}

/** Messages from package managers without a network. */
const unreachable =
  /ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|Temporary failure resolving|Could not resolve/;

/** Maps npm's name for this machine's CPU to Docker's name. */
const dockerCpus: Readonly<Record<string, string>> = { x64: 'amd64' };

/** This machine's settings that a step needs in order to reach its registries. */
const passedOn =
  /^(npm_config_(registry|cafile|userconfig|cache|https?_proxy|proxy)|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|https?_proxy|no_proxy)$/i;

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** CoreDNS's manifests only set the image's user and port 53. */
const asCoreDns: SecurityContext = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
};

const linker =
  process.arch === 'arm64'
    ? { file: '/lib/ld-linux-aarch64.so.1', libraries: 'aarch64-linux-gnu' }
    : { file: '/lib64/ld-linux-x86-64.so.2', libraries: 'x86_64-linux-gnu' };

/** The metadata that a container engine stores along with an image. */
export interface ImageConfig {
  readonly user: string;
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

const empty: Omit<Built, 'root'> = {
  user: '0:0',
  workdir: '/',
  env: { PATH },
  arguments: {},
  entrypoint: [],
  command: [],
};
/** A stage, or the image in the state that its last stage produced. */
interface Built extends ImageConfig {
  readonly root: string;
  /** Variables that only steps see. */
  readonly arguments: Readonly<Record<string, string>>;
}

/**
 * An image made without a container engine. Each stage is a copy-on-write view of this machine's files, in which the
 * Dockerfile's steps are really run. The runtime in `/usr/local/bin` is this one, and the checkout is hidden. Mounts
 * and the network are in the namespaces of a process that `close` ends, and disappear with it.
 */
export class Image {
  readonly #directory = mkdtempSync(join(tmpdir(), 'ndots-image-'));
  readonly #holder: ChildProcess;
  readonly #stages = new Map<string, Built>();
  /** Maps a mount point to its overlay's layers, uppermost first. */
  readonly #layers = new Map<string, readonly string[]>();
  #overlays = 0;
  /** Set if the image is for another CPU. */
  readonly #emulation: Emulation | null;
  readonly #cpu: string;
  #built: Built | null = null;
  #runtime: 'runc' | 'setpriv' | null = null;
  readonly #containers: string[] = [];

  private constructor(emulated: EmulatedCpu | null) {
    this.#emulation = emulated === null ? null : new Emulation();
    this.#cpu = emulated ?? dockerCpus[process.arch] ?? process.arch;
    this.#holder = spawn(
      'unshare',
      ['--mount', '--net', '--propagation', 'private', 'sleep', '3600'],
      { stdio: 'ignore' },
    );
  }

  /**
   * @param emulated the image's CPU, or null for this machine's
   * @throws NoNetwork if a step cannot download its files
   */
  static async build(dockerfile: string, emulated: EmulatedCpu | null = null): Promise<Image> {
    const image = new Image(emulated);
    try {
      image.#emulation?.begin();
      await image.#build(dockerfile);
      return image;
    } catch (error) {
      await image.close();
      throw error;
    }
  }

  async #build(dockerfile: string): Promise<void> {
    const holder = `/proc/${this.#holder.pid}/ns/net`;
    const own = realpathOf('/proc/self/ns/net');
    while (realpathOf(holder) === own) await new Promise((done) => setTimeout(done, 10));
    this.#must(['ip', 'link', 'set', 'lo', 'up'], { network: 'own' });
    // Changes are stored in memory, because the temporary directory may itself be a copy-on-write view.
    this.#must(['mount', '-t', 'tmpfs', '-o', 'size=4g', 'tmpfs', this.#directory]);
    const context = join(this.#directory, 'context');
    // Create it inside the namespace, because files under a mount cannot be reached from outside.
    this.#must(['mkdir', context]);
    const outside = mkdtempSync(join(tmpdir(), 'ndots-context-'));
    try {
      copyContext(`${dockerfile}.dockerignore`, outside);
      this.#must(['cp', '-a', `${outside}/.`, context]);
    } finally {
      rmSync(outside, { recursive: true });
    }
    for (const stage of parseDockerfile(readFileSync(dockerfile, 'utf8')))
      this.#play(stage, context);
  }

  #play({ base, platform, name, steps }: Stage, context: string): void {
    const foreign = this.#emulation !== null && platform !== '$BUILDPLATFORM';
    const earlier = this.#stages.get(base);
    const root = join(this.#directory, name, 'root');
    this.#must(['mkdir', '-p', root]);
    if (earlier !== undefined) this.#stack(earlier.root, root);
    else if (base !== 'scratch')
      if (foreign) this.#foreignBase(base, root);
      else this.#base(base, root);
    let built: Built = earlier === undefined ? { ...empty, root } : { ...earlier, root };
    this.#mountUsual(root);
    for (const step of steps) built = this.#step(step, built, context);
    this.#stages.set(name, built);
    this.#built = built;
  }

  /** Replaces the image `node:N-slim` with this machine's files and its runtime. */
  #base(base: string, root: string): void {
    const major = process.versions.node.split('.')[0];
    if (withoutDigest(base) !== `node:${major}-slim`)
      throw new Error(`the runtime here is ${process.version}; ${base} cannot be played`);
    this.#overlay(['/'], root);
    this.#must(['cp', process.execPath, `${root}/usr/local/bin/node`]);
    const npm = (process.env['PATH'] ?? '')
      .split(delimiter)
      .filter((place) => !place.includes('node_modules'))
      .map((place) => join(place, 'npm'))
      .find((file) => existsSync(file));
    if (npm === undefined) throw new Error('npm is not on this machine');
    this.#must(['ln', '-sf', realpathSync(npm), `${root}/usr/local/bin/npm`]);
  }

  /** Shows one directory's contents at another path, where they can be changed without affecting the original. */
  #stack(from: string, to: string): void {
    this.#overlay(this.#layers.get(from) ?? [from], to);
  }

  /** @param lower directories, uppermost first */
  #overlay(lower: readonly string[], at: string): void {
    const own = join(this.#directory, 'layers', String(this.#overlays++));
    const [changes, work] = [join(own, 'changes'), join(own, 'work')];
    this.#must(['mkdir', '-p', changes, work, at]);
    const layers = `lowerdir=${lower.join(':')},upperdir=${changes},workdir=${work}`;
    this.#must(['mount', '-t', 'overlay', 'overlay', '-o', layers, at]);
    this.#layers.set(at, [changes, ...lower]);
    if (!lower.includes('/')) return;
    // This machine's checkout and temporary files are not part of the image. The checkout may be under /tmp.
    this.#must(['mount', '-t', 'tmpfs', 'tmpfs', `${at}/tmp`]);
    const checkout = join(at, resolve('.'));
    this.#must(['mkdir', '-p', checkout]);
    this.#must(['mount', '-t', 'tmpfs', 'tmpfs', checkout]);
  }

  /** The same for another CPU, with Debian's packages and npm's package of the runtime for it. */
  #foreignBase(base: string, root: string): void {
    this.#must(['mount', '-t', 'tmpfs', '-o', 'size=1g', 'tmpfs', root]);
    this.#must(debianFor('arm64', root));
    this.#must(['mkdir', '-p', `${root}/tmp`]);
    const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      readonly devDependencies: { readonly node: string };
    };
    const runtime = `node-linux-${this.#cpu}@${devDependencies.node}`;
    if (withoutDigest(base) !== `node:${devDependencies.node.split('.')[0]}-slim`)
      throw new Error(`the runtime here is ${runtime}; ${base} cannot be played`);
    const script = `cd "$1" && npm pack --silent "$2" && tar xzf *.tgz && mkdir -p "$3" && mv package/bin/node "$3" && rm -r package *.tgz`;
    this.#must(['sh', '-c', script, 'sh', `${root}/tmp`, runtime, `${root}/usr/local/bin`]);
  }

  #mountUsual(root: string): void {
    this.#must(['mkdir', '-p', `${root}/proc`, `${root}/dev`, `${root}/tmp`]);
    this.#must(['mount', '-t', 'proc', 'proc', `${root}/proc`]);
    this.#must(['mount', '--rbind', '/dev', `${root}/dev`]);
    this.#must(['mount', '-t', 'tmpfs', 'tmpfs', `${root}/tmp`]);
  }

  #step(step: Instruction, built: Built, context: string): Built {
    const { root, workdir } = built;
    switch (step.name) {
      case 'WORKDIR':
        this.#must(['mkdir', '-p', join(root, step.text)]);
        return { ...built, workdir: step.text };
      case 'USER':
        return { ...built, user: step.text };
      case 'ENV':
        return { ...built, env: { ...built.env, ...variablesOf(step) } };
      case 'ENTRYPOINT':
        return { ...built, entrypoint: step.words };
      case 'CMD':
        return { ...built, command: step.words };
      case 'EXPOSE':
        return built;
      case 'ARG':
        if (step.text !== 'TARGETARCH')
          throw new Error(`line ${step.line}: ${step.text} is not known`);
        return { ...built, arguments: { TARGETARCH: this.#cpu } };
      case 'COPY':
        this.#copy(step, built, context);
        return built;
      case 'RUN': {
        const env = {
          ...built.env,
          ...built.arguments,
          HOME: '/root',
          DEBIAN_FRONTEND: 'noninteractive',
          ...registries(),
        };
        this.#must(
          ['chroot', root, ...envWords(env), 'sh', '-c', `cd ${workdir} && ${step.text}`],
          {
            step,
          },
        );
        return built;
      }
      default:
        throw new Error(`line ${step.line}: ${step.name} cannot be played`);
    }
  }

  #copy(step: Instruction, { root, workdir }: Built, context: string): void {
    const { from: stage } = step.flags;
    const source = stage === undefined ? context : this.#stages.get(stage)?.root;
    if (source === undefined) throw new Error(`line ${step.line}: there is no stage ${stage}`);
    const what = copied(step, workdir);
    const [from = '', ...others] = what.from.map((each) => join(source, each).replace(/\/$/, ''));
    // Copies an entire root file system into a missing or empty directory.
    if (this.#layers.has(from) || from === source) {
      const to = join(root, what.to).replace(/\/$/, '');
      this.#stack(from, to);
      if (to === root) this.#mountUsual(root);
      return;
    }
    this.#must(['mkdir', '-p', join(root, parentOf(what))]);
    // A directory's contents are copied to the target itself, while a file is copied into a directory under its own
    // name.
    const script = `for from; do if [ -d "$from" ]; then mkdir -p "$to" && cp -a "$from/." "$to"; else cp -a "$from" "$to"; fi || exit 1; done`;
    this.#must(
      ['env', `to=${join(root, what.to)}`, 'sh', '-c', script, 'sh', ...[from, ...others]],
      { step },
    );
  }

  /** From now on, makes containers use this stage instead of the last one. */
  use(stage: string): void {
    this.#built = this.#stages.get(stage) ?? null;
  }

  /** Adds a file to the images of all stages that start a program, as a mounted ConfigMap would. */
  put(file: string, text: string): void {
    const script = 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod a+rX "$(dirname "$1")" "$1"';
    for (const { root, entrypoint } of this.#stages.values())
      if (entrypoint.length > 0)
        this.#must(['sh', '-c', script, 'sh', join(root, file)], { input: text });
  }

  /**
   * Writes the current stage (`use`) as a tar archive with file capabilities. Without a base, the archive contains the
   * whole image. Otherwise, it is a layer on top of the base, and files in the base that the steps removed are still
   * present.
   */
  exportLayer(file: string): { readonly config: ImageConfig; readonly hasBase: boolean } {
    const { root, user, workdir, env, entrypoint, command } = this.#current;
    const layers = this.#layers.get(root) ?? [root];
    // Devices mark the files that the steps removed. They are left out, because the layer has a different base.
    const script = `for layer; do cd "$layer" && find . -xdev ! -type c -print0 | tar --append --file "$0" --null --no-recursion --files-from - --format=pax --numeric-owner --xattrs --xattrs-include=security.capability || exit 1; done`;
    const own = layers.filter((layer) => layer !== '/').toReversed();
    this.#must(['sh', '-c', script, file, ...own]);
    return { config: { user, workdir, env, entrypoint, command }, hasBase: layers.includes('/') };
  }

  get #current(): Built {
    if (this.#built === null) throw new Error('the Dockerfile has no stage');
    return this.#built;
  }

  /**
   * Returns the command that starts a container from the image, as the kubelet makes containerd start it. Uses runc if
   * it works (`runtime`), otherwise setpriv with the same user, capabilities and privileges.
   * @param args replaces CMD
   * @param command replaces ENTRYPOINT
   * @param more environment variables in addition to the image's
   * @param security the security settings of the container and its pod
   */
  container(
    args: readonly string[] | null,
    command: readonly string[] | null = null,
    more: Readonly<Record<string, string>> = {},
    security: SecurityContext = asCoreDns,
    pod: SecurityContext = {},
  ): string[] {
    const { entrypoint, command: standard, user } = this.#current;
    const words = [...(command ?? entrypoint), ...(args ?? (command === null ? standard : []))];
    const env = { ...this.#current.env, ...more };
    const confinement = confinementOf(user, security, pod);
    return this.runtime === 'runc'
      ? this.#byRunc(words, env, confinement)
      : this.#bySetpriv(words, env, confinement);
  }

  /** The program that starts containers here. */
  get runtime(): 'runc' | 'setpriv' {
    this.#runtime ??= this.#emulation === null && this.#runcWorks() ? 'runc' : 'setpriv';
    return this.#runtime;
  }

  #runcWorks(): boolean {
    const words = this.#byRunc(['node', '--version'], { PATH }, confinementOf('0:0', {}));
    return spawnSync(words[0]!, words.slice(1), { stdio: 'ignore', timeout: 20_000 }).status === 0;
  }

  #byRunc(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    confinement: Confinement,
  ): string[] {
    const { root, workdir } = this.#current;
    const id = `ndots-${process.pid}-${this.#containers.length}`;
    const bundle = join(this.#directory, 'bundles', id);
    const spec = containerSpec({ args, env, root, cwd: workdir, confinement });
    this.#must(['sh', '-c', 'mkdir -p "$1" && cat > "$1/config.json"', 'sh', bundle], {
      input: JSON.stringify(spec),
    });
    this.#containers.push(id);
    return [...this.#inside('own'), ...this.#runc, 'run', '--bundle', bundle, id];
  }

  get #runc(): string[] {
    return ['runc', '--root', join(this.#directory, 'runc')];
  }

  #bySetpriv(
    words: readonly string[],
    env: Readonly<Record<string, string>>,
    { uid, gid, capabilities, noNewPrivileges, readOnly }: Confinement,
  ): string[] {
    const { root, workdir } = this.#current;
    const bounding = ['-all', ...(capabilities ?? ['all'])].map((name, at) =>
      at === 0 ? name : `+${name.replace('CAP_', '').toLowerCase()}`,
    );
    if (workdir !== '/') throw new Error(`containers start in /, and not in ${workdir}`);
    // The image may have no setpriv, so this machine's setpriv is run in it, with its own libraries.
    const host = '/.host';
    const mounted = `mountpoint -q "$0" || { mkdir -p "$0" && mount --bind / "$0"; }`;
    this.#must(['sh', '-c', mounted, join(root, host)]);
    this.#must(['mount', '-o', `remount,${readOnly ? 'ro' : 'rw'}`, root]);
    const libraries = ['lib', 'usr/lib'].map((place) => `${host}/${place}/${linker.libraries}`);
    return [
      ...this.#inside('own'),
      ...(this.#emulation?.words ?? []),
      ...envWords(env),
      ...['chroot', root, `${host}${linker.file}`, '--library-path', libraries.join(':')],
      ...[`${host}/usr/bin/setpriv`, '--reuid', String(uid), '--regid', String(gid)],
      '--clear-groups',
      // As in container runtimes, the capability is effective when the program starts, not only for its children.
      ...[...(noNewPrivileges ? ['--no-new-privs'] : []), '--securebits=+no_setuid_fixup'],
      ...[`--bounding-set=${bounding.join(',')}`, '--inh-caps=-all'],
      ...words,
    ];
  }

  /** Returns the command that runs one of this machine's programs in the container's network. */
  beside(...words: string[]): string[] {
    return ['nsenter', '-t', String(this.#emulation?.pid ?? this.#holder.pid), '--net', ...words];
  }

  #inside(network: 'own' | 'host'): string[] {
    const spaces = network === 'own' ? ['--mount', '--net'] : ['--mount'];
    return ['nsenter', '-t', String(this.#holder.pid), ...spaces];
  }

  #must(
    words: readonly string[],
    {
      step,
      input,
      network = 'host',
    }: { step?: Instruction; input?: string; network?: 'own' | 'host' } = {},
  ): void {
    const [program = '', ...rest] = [...this.#inside(network), ...words];
    const ran: SpawnSyncReturns<string> = spawnSync(program, rest, {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
      ...(input === undefined ? {} : { input }),
    });
    if (ran.status === 0) return;
    const text = `${ran.stdout}${ran.stderr}`;
    if (unreachable.test(text)) throw new NoNetwork(text);
    const where =
      step === undefined ? words.join(' ') : `line ${step.line}: ${step.name} ${step.text}`;
    throw new Error(`${where}\nended with ${ran.status ?? ran.signal}:\n${text}`);
  }

  #remove(id: string): void {
    const [program, ...rest] = [...this.#inside('own'), ...this.#runc, 'delete', '--force', id];
    spawnSync(program, rest, { stdio: 'ignore', timeout: 20_000 });
  }

  async close(): Promise<void> {
    const ended = new Promise((done) => this.#holder.once('exit', done));
    for (const id of this.#containers) this.#remove(id);
    this.#emulation?.end();
    this.#holder.kill('SIGKILL');
    if (this.#holder.exitCode === null && this.#holder.signalCode === null) await ended;
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

const withoutDigest = (image: string): string => image.replace(/@sha256:[0-9a-f]{64}$/, '');

const realpathOf = (link: string): string => {
  const { stdout } = spawnSync('readlink', [link], { encoding: 'utf8' });
  return stdout.trim();
};

const envWords = (env: Readonly<Record<string, string>>): string[] => [
  'env',
  '-i',
  ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
];

function registries(): Record<string, string> {
  const found = Object.entries(process.env).filter(([name]) => passedOn.test(name));
  return {
    ...(Object.fromEntries(found) as Record<string, string>),
    npm_config_prefer_offline: 'true',
    npm_config_fetch_retries: '1',
  };
}

/**
 * The files that Docker would send to the builder: all files not excluded by the ignore file, where the last matching
 * line counts.
 */
function copyContext(ignoreFile: string, to: string): void {
  const rules = readFileSync(ignoreFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keeps: line.startsWith('!'), pattern: line.replace(/^!/, '') }));
  const fits = (file: string, pattern: string): boolean =>
    file === pattern || file.startsWith(`${pattern}/`) || matchesGlob(file, pattern);
  const isSent = (file: string): boolean =>
    (rules.findLast(({ pattern }) => fits(file, pattern))?.keeps ?? true) ||
    // A directory that contains files to send.
    rules.some(({ keeps, pattern }) => keeps && pattern.startsWith(`${file}/`));
  cpSync('.', to, {
    recursive: true,
    filter: (source) => {
      const file = relative('.', source);
      return file === '' || isSent(file);
    },
  });
}

/** A bundle's `config.json`, with those settings from containerd's CRI plug-in that a program could notice. */
function containerSpec(parts: {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly root: string;
  readonly cwd: string;
  readonly confinement: Confinement;
}): object {
  const { args, env, root, cwd, confinement } = parts;
  const { uid, gid, noNewPrivileges, readOnly, seccomp } = confinement;
  const capabilities = confinement.capabilities ?? everyCapability();
  const mount = (destination: string, type: string, ...options: readonly string[]): object => ({
    destination,
    type,
    source: type,
    options: ['nosuid', ...options],
  });
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid, gid },
      args,
      env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      cwd,
      noNewPrivileges,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    root: { path: root, readonly: readOnly },
    mounts: [
      mount('/proc', 'proc', 'noexec', 'nodev'),
      mount('/dev', 'tmpfs', 'strictatime', 'mode=755'),
      mount('/dev/pts', 'devpts', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'),
      mount('/dev/shm', 'tmpfs', 'noexec', 'nodev', 'mode=1777'),
      mount('/sys', 'sysfs', 'noexec', 'nodev', 'ro'),
    ],
    linux: {
      // The network namespace is the image's, because its runtime is started there.
      namespaces: ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
      ...(seccomp !== null && { seccomp }),
    },
  };
}

/** All capabilities that this process can grant. */
function everyCapability(): readonly string[] {
  const { stdout } = spawnSync('setpriv', ['--list-caps'], { encoding: 'utf8' });
  const [, hex = '0'] = /^CapPrm:\s+(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  const held = BigInt(`0x${hex}`);
  return stdout
    .trim()
    .split('\n')
    .filter((_, number) => (held >> BigInt(number)) & 1n)
    .map((name) => `CAP_${name.toUpperCase()}`);
}
