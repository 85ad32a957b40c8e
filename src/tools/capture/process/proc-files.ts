/** Processes as /proc(5) shows them. A process may end between two of these calls. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { SeenProcess } from '../pair/asker.ts';
import { clipped } from '../../../server/base/shortened.ts';

/** Characters of a command line that are shown. */
const LINE_MAX = 200;
/** A clock tick of /proc: 10 ms on every architecture that is supported. */
const TICK_MS = 10;

/** Why the files of a process cannot be read. */
export type Unreadable = 'ended' | 'refused';

/** All processes that this PID namespace shows. */
export function allProcesses(): readonly number[] {
  try {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0);
  } catch {
    return [];
  }
}

/** The network namespace of a process, as `net:[4026531840]`; null: not known. */
export function networkOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return null;
  }
}

/**
 * Whether a process holds the socket.
 * @param spent counts the files that were read
 */
export function holdsSocket(
  pid: number,
  inode: number,
  spent: { files: number },
): boolean | Unreadable {
  const wanted = `socket:[${inode}]`;
  let files: readonly string[];
  try {
    files = readdirSync(`/proc/${pid}/fd`);
  } catch (error) {
    return whyUnread(error);
  }
  spent.files += files.length;
  // The newest have the highest numbers, mostly.
  for (let at = files.length - 1; at >= 0; at--)
    try {
      if (readlinkSync(`/proc/${pid}/fd/${files[at]}`) === wanted) return true;
    } catch (error) {
      if (whyUnread(error) === 'refused') return 'refused';
    }
  return false;
}

/** The start of a process, milliseconds after the machine's, rounded down to 10; null: it ended. */
export function startedMs(pid: number): number | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name may hold spaces and parentheses.
    const words = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // A zombie has no files any more, so no search finds it again.
    return Number(words[19]) * TICK_MS;
  } catch {
    return null;
  }
}

/** The process of this number now; null: it ended. */
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

/** The name of a process; empty: it ended. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd();
  } catch {
    return '';
  }
}

/** Paths of the cgroups of a process: one of v2, and one for each hierarchy of v1. */
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
