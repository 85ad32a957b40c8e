/**
 * The records of runs: the process, control groups and directory of a node. A run that was killed leaves its
 * record. The next run ends and removes everything in it, and touches nothing else.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { processesIn, removeGroups } from './control-group.ts';
import { say, until } from './progress.ts';

/** A process, distinguished from later ones with the same id. */
export interface KnownProcess {
  readonly pid: number;
  /** Clock ticks between the start of the machine and of the process: field 22 of `/proc/PID/stat`. */
  readonly startedAt: string;
}

/** The processes and files of one node on this machine. */
export interface NodeRecord {
  readonly id: string;
  /** The id of the machine's current boot: process ids of another one are meaningless. */
  readonly boot: string;
  /** The test that uses the node. */
  readonly owner: KnownProcess;
  readonly groups: readonly string[];
}

export const cacheFolder = (): string =>
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'ndots', 'node');

const runsFolder = (): string => join(cacheFolder(), 'runs');

export const nodeFolder = (id: string): string => join(runsFolder(), id);

const recordOf = (id: string): string => join(runsFolder(), `${id}.json`);

/** Null: it does not run. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

const presentBoot = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/** Records the parts of a node before they exist. */
export function record(id: string, groups: readonly string[]): NodeRecord {
  const owner = { pid: process.pid, startedAt: startOf(process.pid)! };
  const made: NodeRecord = { id, boot: presentBoot(), owner, groups };
  mkdirSync(nodeFolder(id), { recursive: true });
  writeFileSync(recordOf(id), JSON.stringify(made));
  return made;
}

/** Ends all processes in the groups of a node, removes the groups and the directory, and then the record. */
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
  rmSync(nodeFolder(node.id), { recursive: true, force: true });
  rmSync(recordOf(node.id), { force: true });
}

/** The records of all nodes that are there. */
export function nodeRecords(): readonly NodeRecord[] {
  if (!existsSync(runsFolder())) return [];
  return readdirSync(runsFolder())
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(runsFolder(), name), 'utf8')) as NodeRecord);
}

/** Removes the nodes whose tests do not run any more. */
export async function removeLeftovers(): Promise<void> {
  for (const node of nodeRecords()) {
    const { owner } = node;
    if (node.boot === presentBoot() && startOf(owner.pid) === owner.startedAt) continue;
    say(`removing node ${node.id}, which a run that was killed left`);
    await remove(node);
  }
}
