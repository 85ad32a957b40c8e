/**
 * Runs a program under a seccomp profile, as container runtimes do: `node under-seccomp.ts PROFILE.json PROGRAM
 * [WORD…]`. libseccomp builds the filter, and the program replaces this process.
 */
import { readFileSync } from 'node:fs';
import koffi from 'koffi';

interface Profile {
  readonly defaultErrnoRet: number;
  readonly syscalls: readonly { readonly names: readonly string[]; readonly action: string }[];
}

const ALLOW = 0x7fff0000;
const ERRNO = 0x00050000;

const [file = '', ...words] = process.argv.slice(2);
const { defaultErrnoRet, syscalls } = JSON.parse(readFileSync(file, 'utf8')) as Profile;
const seccomp = koffi.load('libseccomp.so.2');
const init = seccomp.func('void *seccomp_init(uint32_t action)');
const numberOf = seccomp.func('int seccomp_syscall_resolve_name(const char *name)');
const allow = seccomp.func(
  'int seccomp_rule_add_array(void *filter, uint32_t action, int call, unsigned int count, void *arguments)',
);
const load = seccomp.func('int seccomp_load(void *filter)');
const libc = koffi.load('libc.so.6');
const execv = libc.func('int execv(const char *path, const char *const *words)');
const fcntl = libc.func('int fcntl(int descriptor, int command, int flags)');
const F_SETFD = 2;

const filter: unknown = init(ERRNO | defaultErrnoRet);
for (const { names } of syscalls)
  for (const name of names) {
    const number = numberOf(name) as number;
    // Calls from other architectures have no number here.
    if (number < 0) continue;
    const failure = allow(filter, ALLOW, number, 0, null) as number;
    if (failure !== 0) throw new Error(`${name}: libseccomp says ${failure}`);
  }
const failure = load(filter) as number;
if (failure !== 0) throw new Error(`the filter is not taken: ${failure}`);
// The runtime has marked them close-on-exec.
for (const descriptor of [0, 1, 2]) fcntl(descriptor, F_SETFD, 0);
execv(words[0]!, [...words, null]);
throw new Error(`${words[0]} cannot be started`);
