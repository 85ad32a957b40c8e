/** Programs of this machine that the lab calls, and what it says when one of them fails. */
import { spawnSync } from 'node:child_process';
import { Problem } from '../base/problem.ts';

/** What a program has said. */
export interface Said {
  /** -1: it was ended by a signal, or by its time limit. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly tookMs: number;
}

/** Longest time of one call, unless it says otherwise, milliseconds. */
const TIME_LIMIT_MS = 60_000;
const OUTPUT_LIMIT = 1 << 26;

/** Runs a program to its end. Throws a `Problem` only if it is not there. */
export function call(
  words: readonly string[],
  {
    input = '',
    limitMs = TIME_LIMIT_MS,
  }: { readonly input?: string; readonly limitMs?: number } = {},
): Said {
  const [program = '', ...rest] = words;
  const began = performance.now();
  const { status, stdout, stderr, error } = spawnSync(program, rest, {
    input,
    encoding: 'utf8',
    timeout: limitMs,
    maxBuffer: OUTPUT_LIMIT,
  });
  if (error !== undefined && 'code' in error && error.code === 'ENOENT') throw missing(program);
  return { status: status ?? -1, stdout, stderr, tookMs: performance.now() - began };
}

/** Runs a program that must succeed, and gives what it printed. */
export function must(words: readonly string[], input = ''): string {
  const { status, stdout, stderr } = call(words, { input });
  if (status === 0) return stdout;
  throw new Problem({
    code: 'lab-command',
    text: `${words.join(' ')} failed: ${(stderr || stdout).trim().split('\n').slice(0, 3).join('; ')}`,
    hint: 'the kernel may lack a part that the lab needs',
    remedy: 'ndots lab list says what is missing here',
  });
}

/** Which Debian package has a program, where the two have different names. */
const packages: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  tc: 'iproute2',
  nft: 'nftables',
  'iptables-restore': 'iptables',
  getent: 'libc-bin',
  dig: 'dnsutils',
  unshare: 'util-linux',
  nsenter: 'util-linux',
  mount: 'mount',
};

/** What is said of a program that is not installed. */
function missing(program: string): Problem {
  return new Problem({
    code: 'lab-program',
    text: `${program} is not installed`,
    remedy: `apt-get install ${packages[program] ?? program}`,
  });
}
