/**
 * Writes deploy/seccomp/*.json from observed system calls: `node tools/seccomp.ts [PROFILE…]`. Whole-server tests run
 * each `ndots` under strace. The profiles only allow the observed calls and those that a container runtime makes before
 * it starts the program. This takes minutes, and needs root, strace and the tests' programs.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The `ndots` command for each profile, and tests that exercise the whole command. */
const profiles: Readonly<Record<string, { readonly verb: string; readonly tests: string[] }>> = {
  serve: {
    verb: 'serve',
    tests: [
      ...['serve', 'encrypted-reload', 'grpc-coredns', 'dnstap', 'etcd', 'log', 'metrics-tls'],
      ...['zones', 'dnssec', 'rrl', 'few-descriptors', 'hostile', 'hostile-upstream', 'example'],
    ].map((name) => `test/real/${name}.test.ts`),
  },
  'node-cache': {
    verb: 'node-cache',
    tests: ['', '-network', '-upgrade'].map((name) => `test/real/node-cache${name}.test.ts`),
  },
  capture: { verb: 'capture', tests: ['test/real/capture-process.test.ts'] },
  check: {
    verb: 'check',
    tests: ['', '-kuberhealthy'].map((name) => `test/real/check${name}.test.ts`),
  },
  size: { verb: 'size', tests: ['test/real/autoscaler.cluster.test.ts'] },
  webhook: {
    verb: 'webhook',
    tests: ['webhook', 'deploy-rights'].map((name) => `test/real/${name}.cluster.test.ts`),
  },
};
profiles['serve']!.tests.push(
  'src/server/engine/control/worker-death.test.ts',
  'test/real/restored-api-server.cluster.test.ts',
);

/**
 * System calls that a container runtime makes once the filter is installed, and calls that any thread may make at any
 * time.
 */
const always = [
  ...[
    'capget',
    'capset',
    'chdir',
    'close_range',
    'dup',
    'dup3',
    'execve',
    'faccessat',
    'faccessat2',
  ],
  // Native code calls fsync when the runtime exits after an error, and would wait forever if it were denied.
  ...['fchdir', 'fstatfs', 'fsync', 'getdents64', 'prctl', 'setgid', 'setgroups', 'setuid'],
  ...['clock_gettime', 'clock_getres', 'gettimeofday', 'getcpu', 'clone', 'clone3', 'exit'],
  ...['exit_group', 'futex_waitv', 'madvise', 'membarrier', 'mremap', 'munmap', 'nanosleep'],
  ...['restart_syscall', 'rt_sigpending', 'rt_sigreturn', 'rt_sigtimedwait', 'sched_yield'],
  ...['sigaltstack', 'tgkill', 'timerfd_create', 'timerfd_settime', 'wait4', 'waitid'],
];

/**
 * System calls that the C library makes to resolve names over UDP and TCP, and to sort addresses. On some clouds the
 * API server has a name, while in the tests it has an address.
 */
const nameLookup = [
  ...['bind', 'connect', 'getpeername', 'getsockname', 'getsockopt', 'ioctl', 'lseek', 'poll'],
  ...['ppoll', 'recvfrom', 'recvmsg', 'sendmmsg', 'sendmsg', 'sendto', 'setsockopt', 'socket'],
  ...['uname', 'writev'],
];

/**
 * These are called if available but better denied. The runtime works without them, and container runtimes deny them
 * too.
 */
const never = /^io_uring_/;

/** System calls with different names on other architectures, and their equivalents. */
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  access: ['faccessat', 'faccessat2'],
  arch_prctl: [],
  chmod: ['fchmodat'],
  chown: ['fchownat'],
  dup2: ['dup3'],
  epoll_create: ['epoll_create1'],
  epoll_wait: ['epoll_pwait', 'epoll_pwait2'],
  eventfd: ['eventfd2'],
  fork: ['clone'],
  getdents: ['getdents64'],
  inotify_init: ['inotify_init1'],
  link: ['linkat'],
  lstat: ['newfstatat', 'statx'],
  mkdir: ['mkdirat'],
  mknod: ['mknodat'],
  open: ['openat'],
  pipe: ['pipe2'],
  poll: ['ppoll'],
  readlink: ['readlinkat'],
  rename: ['renameat', 'renameat2'],
  rmdir: ['unlinkat'],
  select: ['pselect6'],
  signalfd: ['signalfd4'],
  stat: ['newfstatat', 'statx'],
  symlink: ['symlinkat'],
  unlink: ['unlinkat'],
  vfork: ['clone'],
};

/** If a newer call fails with ENOSYS, libraries fall back to an older one. */
const ENOSYS = 38;

/**
 * The system calls that `ndots VERB` makes in these tests.
 * @throws if it was never started
 */
function observed(verb: string, tests: readonly string[]): ReadonlySet<string> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-system-calls-'));
  try {
    const { status } = spawnSync(process.execPath, ['tools/test.ts', ...tests], {
      env: { ...process.env, NDOTS_SYSTEM_CALLS: directory },
      stdio: 'inherit',
    });
    const files = readdirSync(directory).filter((name) => name.startsWith(`${verb}-`));
    if (files.length === 0) throw new Error(`no test started ndots ${verb}`);
    // strace slows everything down, so a test may time out, but its calls still count.
    console.error(`${verb}: ${files.length} processes observed; the tests ended with ${status}`);
    return new Set(files.flatMap((name) => callsIn(readFileSync(join(directory, name), 'utf8'))));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The system call names in the output of `strace -c -U name`. */
function callsIn(text: string): readonly string[] {
  const heads = new Set(['syscall', 'total']);
  return text.split('\n').filter((line) => /^[a-z_0-9]+$/.test(line) && !heads.has(line));
}

function profileOf(calls: ReadonlySet<string>): object {
  const names = new Set(
    [...always, ...nameLookup, ...calls].flatMap((name) => [name, ...(elsewhere[name] ?? [])]),
  );
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: ENOSYS,
    architectures: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_AARCH64'],
    syscalls: [
      {
        names: [...names].filter((name) => !never.test(name)).toSorted(),
        action: 'SCMP_ACT_ALLOW',
      },
    ],
  };
}

const asked = process.argv.slice(2);
// The program is observed in the form in which it is built for the image.
if (spawnSync(process.execPath, ['tools/build.ts'], { stdio: 'inherit' }).status !== 0)
  process.exit(2);
mkdirSync('deploy/seccomp', { recursive: true });
for (const [name, { verb, tests }] of Object.entries(profiles)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const profile = profileOf(observed(verb, tests));
  writeFileSync(`deploy/seccomp/${name}.json`, `${JSON.stringify(profile, null, 2)}\n`);
}
