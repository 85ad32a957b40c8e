/**
 * Records of runs, each with a node's process, control groups and directory. If a run is killed, its record remains.
 * The next run kills and removes everything listed in it, and nothing else.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { processesIn, removeGroups } from './control-group.ts';
import { say, until } from './progress.ts';

/** A process, identified in a way that distinguishes it from a later one with the same ID. */
export interface KnownProcess {
  readonly pid: number;
  /** Clock ticks between the machine's start and the process's start, from field 22 of `/proc/PID/stat`. */
  readonly startedAt: string;
}

/** One node's processes and files on this machine. */
export interface NodeRecord {
  readonly id: string;
  /** The ID of the machine's current boot. Process IDs from an earlier boot mean nothing. */
  readonly boot: string;
  /** The test that uses the node. */
  readonly owner: KnownProcess;
  readonly groups: readonly string[];
}

export const cacheDirectory = (): string =>
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'ndots', 'node');

const runsDirectory = (): string => join(cacheDirectory(), 'runs');

export const nodeDirectory = (id: string): string => join(runsDirectory(), id);

const recordOf = (id: string): string => join(runsDirectory(), `${id}.json`);

/** The process's start, or null if it is not running. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

const presentBoot = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/** Records a node's parts before they exist. */
export function record(id: string, groups: readonly string[]): NodeRecord {
  const owner = { pid: process.pid, startedAt: startOf(process.pid)! };
  const made: NodeRecord = { id, boot: presentBoot(), owner, groups };
  mkdirSync(nodeDirectory(id), { recursive: true });
  writeFileSync(recordOf(id), JSON.stringify(made));
  return made;
}

/** Kills all processes in a node's groups, then removes the groups, the directory, and finally the record. */
export async function remove(node: NodeRecord): Promise<void> {
  if (node.boot === presentBoot()) {
    await until(
      `the processes of node ${node.id} to end`,
      () => {
        const left = processesIn(node.groups);
        for (const pid of left) {
          try {
            process.kill(pid, 'SIGKILL');
          } catch {}
        }
        return left.length === 0 ? null : `${left.length} processes`;
      },
      60_000,
    );
    await until(
      `the control groups of node ${node.id} to be empty`,
      () => {
        const left = removeGroups(node.groups);
        return left.length === 0 ? null : left.join(' ');
      },
      30_000,
    );
  }
  rmSync(nodeDirectory(node.id), { recursive: true, force: true });
  rmSync(recordOf(node.id), { force: true });
}

/** The records of all existing nodes. */
export function nodeRecords(): readonly NodeRecord[] {
  if (!existsSync(runsDirectory())) return [];
  return readdirSync(runsDirectory())
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(runsDirectory(), name), 'utf8')) as NodeRecord);
}

/** Removes nodes whose tests are no longer running. */
export async function removeLeftovers(): Promise<void> {
  for (const node of nodeRecords()) {
    const { owner } = node;
    if (node.boot === presentBoot() && startOf(owner.pid) === owner.startedAt) continue;
    say(`removing node ${node.id}, which a run that was killed left`);
    await remove(node);
  }
}
