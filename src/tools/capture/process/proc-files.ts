/** Reads processes from /proc (proc(5)). A process may exit between any two calls. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import type { SeenProcess } from '../pair/asker.ts';
import { clipped } from '../../../server/base/shortened.ts';

const LINE_MAX = 200;
/** A clock tick in /proc in milliseconds, on all supported architectures. */
const TICK_MS = 10;

export type Unreadable = 'ended' | 'refused';

export function allProcesses(): readonly number[] {
  try {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0);
  } catch {
    return [];
  }
}

/** A process's network namespace, as `net:[4026531840]`, or the reason why it is unknown. */
export function networkOf(pid: number): { readonly name: string } | Unreadable {
  try {
    return { name: readlinkSync(`/proc/${pid}/ns/net`) };
  } catch (error) {
    // With the capability, the kernel hides only a few protected processes, which say nothing about the others.
    return whyUnread(error) === 'refused' && !(ptrace ??= hasPtrace()) ? 'refused' : 'ended';
  }
}

/** The CAP_SYS_PTRACE bit in capability sets (capabilities(7)). */
const CAP_SYS_PTRACE = 19n;
let ptrace: boolean | undefined;

/** True if this process has CAP_SYS_PTRACE, which grants access to processes with more rights. */
function hasPtrace(): boolean {
  const [, set = '0'] = /^CapEff:\s*(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return ((BigInt(`0x${set}`) >> CAP_SYS_PTRACE) & 1n) === 1n;
}

export interface FileBudget {
  readonly left: number;
  spend(files: number): void;
}

/**
 * The descriptor of a socket in a process, for example `7`, or null if the process does not have it. `busy` means that
 * the process has more open files than may be read.
 */
export function descriptorOf(
  pid: number,
  inode: number,
  budget: FileBudget,
): { readonly descriptor: string } | Unreadable | 'busy' | null {
  let files: readonly string[];
  try {
    // The number of open files since Linux 6.2. A million of them take long even to list.
    if (statSync(`/proc/${pid}/fd`).size > budget.left) return 'busy';
    files = readdirSync(`/proc/${pid}/fd`);
  } catch (error) {
    return whyUnread(error);
  }
  if (files.length > budget.left) return 'busy';
  budget.spend(files.length);
  // The newest descriptors usually have the highest numbers.
  for (let at = files.length - 1; at >= 0; at--)
    try {
      if (isSocketAt(pid, files[at]!, inode)) return { descriptor: files[at]! };
    } catch (error) {
      if (whyUnread(error) === 'refused') return 'refused';
    }
  return null;
}

/** @throws an error if the process has no such descriptor, or if access is denied */
export function isSocketAt(pid: number, descriptor: string, inode: number): boolean {
  return readlinkSync(`/proc/${pid}/fd/${descriptor}`) === `socket:[${inode}]`;
}

/** A process's start time in milliseconds after boot, rounded down to a multiple of 10, or null if it has exited. */
export function startedMs(pid: number): number | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name may contain spaces and parentheses.
    const words = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return Number(words[19]) * TICK_MS;
  } catch {
    return null;
  }
}

/** Null: it has exited. */
export function describeProcess(pid: number): SeenProcess | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const fields = new Map(
      status.split('\n').map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      }),
    );
    const field = (name: string): string => fields.get(name) ?? '';
    const innerPid = Number(field('NSpid').split('\t').at(-1));
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const parent = Number(field('PPid'));
    return {
      pid,
      ...(innerPid > 0 && innerPid !== pid && { innerPid }),
      command: field('Name'),
      commandLine: clipped(words.join(' ').trim(), LINE_MAX),
      parent: parent > 0 ? { pid: parent, command: commandOf(parent) } : null,
    };
  } catch {
    return null;
  }
}

/** Empty: it has exited. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd();
  } catch {
    return '';
  }
}

/** Paths of a process's cgroups, one for v2 and one for each v1 hierarchy. */
export function cgroupsOf(pid: number): readonly string[] {
  try {
    const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trimEnd().split('\n');
    return lines.map((line) => line.split(':').slice(2).join(':'));
  } catch {
    return [];
  }
}

function whyUnread(error: unknown): Unreadable {
  const { code } = error as { readonly code?: string };
  return code === 'EACCES' || code === 'EPERM' ? 'refused' : 'ended';
}
