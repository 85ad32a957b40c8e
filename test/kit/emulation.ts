/** Runs programs for other CPUs on this machine, using QEMU in user mode and Debian's packages for that CPU. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';

/** The CPUs that can be emulated, in Docker's spelling. */
export type EmulatedCpu = 'arm64';

/**
 * A program's first bytes, for the kernel's binfmt_misc. The mask excludes bytes that differ between systems and
 * linkers.
 */
const program = {
  magic: String.raw`\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00`,
  mask: String.raw`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff`,
};

const qemu = '/usr/bin/qemu-aarch64-static';

/** The reason why programs for this CPU cannot run here as root, or null if they can. */
export function noEmulation(cpu: EmulatedCpu): string | null {
  if (process.arch === cpu) return `this machine is ${cpu} itself`;
  for (const [words, name] of [
    [[qemu, '--version'], 'qemu-user-static'],
    [['mmdebstrap', '--version'], 'mmdebstrap'],
  ] as const)
    if (spawnSync(words[0], words.slice(1)).status !== 0) return `${name} is not installed`;
  if (!existsSync('/usr/share/keyrings/debian-archive-keyring.gpg'))
    return 'debian-archive-keyring is not installed';
  const emulation = new Emulation();
  try {
    emulation.begin();
    return null;
  } catch {
    return 'needs binfmt_misc of its own in a user namespace (Linux 6.7)';
  } finally {
    emulation.end();
  }
}

/**
 * Namespaces, including a network, in which the kernel passes programs for another CPU to QEMU. The rest of the machine
 * is not affected. Users are shared with the machine.
 */
export class Emulation {
  readonly #holder: ChildProcess = spawn(
    'unshare',
    ['--user', '--mount', '--net', '--propagation', 'private', 'sleep', '3600'],
    { stdio: 'ignore' },
  );

  /** @throws if the kernel does not support it */
  begin(): void {
    const { pid } = this.#holder;
    const own = spaceOf('self');
    const until = Date.now() + 10_000;
    while (spaceOf(String(pid)) === own)
      if (Date.now() > until) throw new Error('a user namespace cannot be had');
    for (const map of ['uid_map', 'gid_map'])
      writeFileSync(`/proc/${pid}/${map}`, '0 0 4294967295\n');
    // The O flag opens the interpreter now, so that it is available in any root. C applies the file's capabilities, as
    // if it ran natively.
    const line = `:ndots-arm64:M::${program.magic}:${program.mask}:${qemu}:OCF`;
    const at = '/proc/sys/fs/binfmt_misc';
    const script = `mount -t binfmt_misc binfmt_misc ${at} && printf %s "$1" > ${at}/register && ip link set lo up`;
    const words = ['-t', String(pid), '--user', '--mount', '--net', 'sh', '-c', script, 'sh', line];
    const { status, stderr } = spawnSync('nsenter', words, { encoding: 'utf8', timeout: 20_000 });
    if (status !== 0) throw new Error(stderr);
  }

  /** The command prefix that runs a program in any mount namespace. */
  get words(): readonly string[] {
    return ['nsenter', '-t', String(this.#holder.pid), '--user', '--net'];
  }

  /** The process that owns the network. */
  get pid(): number {
    return this.#holder.pid!;
  }

  end(): void {
    this.#holder.kill('SIGKILL');
  }
}

const spaceOf = (process: string): string =>
  spawnSync('readlink', [`/proc/${process}/ns/user`], { encoding: 'utf8' }).stdout.trim();

/** Lists the unpacked packages where `dpkg-query` looks, because unpacking alone does not. */
const listPackages =
  'for deb in "$1"/var/cache/apt/archives/*.deb; do dpkg-deb -f "$deb"; echo "Status: install ok unpacked"; echo; done >> "$1/var/lib/dpkg/status"';

/**
 * The command that unpacks a small Debian for this CPU into an empty directory without running anything in it. It
 * includes the parts of a Node image that Node and container startup need.
 */
export const debianFor = (cpu: EmulatedCpu, directory: string): readonly string[] => {
  const needed = [
    'base-files',
    'coreutils',
    'dash',
    'libatomic1',
    'libc6',
    'libstdc++6',
    'util-linux',
  ];
  return [
    ...['mmdebstrap', '--quiet', '--mode=root', '--variant=extract', `--architectures=${cpu}`],
    ...[`--extract-hook=${listPackages}`, `--include=${needed.join(',')}`, 'bookworm', directory],
  ];
};
