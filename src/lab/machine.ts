/** What this machine gives a lab: rights, programs, parts of the kernel. Asked of the machine itself, never guessed. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { libc } from '../linux/libc.ts';
import { call } from './programs.ts';

/** Something a story cannot do without: a program, or a part of the kernel. */
export type Need =
  | { readonly program: string }
  /** A rule of iptables that the kernel must take, in `iptables-restore`'s words: `-m statistic --mode random`. */
  | { readonly rule: string; readonly part: string };

/** Programs without which there is no lab at all. */
const basics = ['unshare', 'setpriv', 'mount', 'nsenter', 'ip', 'iptables-restore'] as const;

/** Where programs are looked for. */
export type SearchPath = string;

/** Whether a program is there. */
export function hasProgram(name: string, path: SearchPath): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** What a lab lacks here, in words that say what to do; empty: nothing. */
export function lacksOfMachine(path: SearchPath): readonly string[] {
  if (process.platform !== 'linux') return [`Linux (this is ${process.platform})`];
  const lacks: string[] = [];
  if (process.getuid?.() !== 0) lacks.push('root (try sudo)');
  for (const name of basics) if (!hasProgram(name, path)) lacks.push(`the program ${name}`);
  try {
    libc();
  } catch (error) {
    lacks.push(`system calls (${(error as Error).message})`);
  }
  if (lacks.length > 0) return lacks;
  if (call(['unshare', '--net', '--mount', '--pid', '--fork', '--mount-proc', 'true']).status !== 0)
    return ['the right to make namespaces (in a container: --privileged)'];
  if (inScratch('-A PREROUTING -j RETURN') !== 0) lacks.push('NAT in the kernel (nf_nat)');
  return lacks;
}

/** What of a story's needs is not there. */
export function lacksOfStory(needs: readonly Need[], path: SearchPath): readonly string[] {
  return needs.flatMap((need) => {
    if ('program' in need)
      return hasProgram(need.program, path) ? [] : [`the program ${need.program}`];
    return inScratch(need.rule) === 0 ? [] : [`${need.part} in the kernel`];
  });
}

/** Whether the kernel takes a rule of the table nat: asked in a namespace of its own, which is gone afterwards. */
function inScratch(rule: string): number {
  const input = `*nat\n${rule}\nCOMMIT\n`;
  return call(['unshare', '--net', 'iptables-restore', '--noflush'], { input }).status;
}
