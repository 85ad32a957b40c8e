/** Runs commands on this machine and reports failures. */
import { errorCode } from '../../server/base/error-code.ts';
import { Problem } from '../../server/base/problem.ts';
import {
  runProgramNow,
  type ProgramResult,
  type RunSettings,
} from '../../server/runtime/programs.ts';

/** Throws a `Problem` only if the program cannot be started. */
export function call(words: readonly string[], settings: RunSettings = {}): ProgramResult {
  try {
    return runProgramNow(words, settings);
  } catch (error) {
    throw unstarted(words[0] ?? '', error);
  }
}

/** Runs a program that must succeed and returns its output. */
export function must(words: readonly string[], input = ''): string {
  const { code, stdout, stderr } = call(words, { input });
  if (code === 0) return stdout;
  const message = (stderr || stdout).trim().split('\n').slice(0, 3).join('; ');
  throw new Problem({
    code: 'lab-command',
    text: `${words.join(' ')} failed: ${message || (code ?? 'a signal ended it')}`,
    hint: 'The kernel may lack a feature that the lab needs.',
    remedy: 'ndots lab list shows the missing features.',
  });
}

/** Debian packages whose names differ from their programs. */
const packages: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  tc: 'iproute2',
  nft: 'nftables',
  'iptables-restore': 'iptables',
  getent: 'libc-bin',
  dig: 'dnsutils',
  unshare: 'util-linux',
  nsenter: 'util-linux',
  setpriv: 'util-linux',
  mount: 'mount',
};

function unstarted(program: string, error: unknown): unknown {
  if (errorCode(error) !== 'ENOENT') return error;
  return new Problem({
    code: 'lab-program',
    text: `${program} is not installed`,
    remedy: `apt-get install ${packages[program] ?? program}`,
    cause: error,
  });
}
