/**
 * Records a lab that runs until it is taken down, so that later processes can find it and tell it apart from others.
 */
import { linkSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isObject } from '../../server/base/json-object.ts';
import { Problem } from '../../server/base/problem.ts';
import type { LabPod } from './cluster-plan.ts';

/** The pod fields that another process needs. */
export type StandingPod = Pick<
  LabPod,
  'namespace' | 'pod' | 'name' | 'node' | 'addresses' | 'files'
>;

export interface StandingLab {
  /** The ID of the lab's first process, as seen from outside the lab. */
  readonly pid: number;
  /** The start time of that process in kernel ticks, because process IDs are reused. */
  readonly startTime: string;
  readonly pods: readonly StandingPod[];
}

/** The recorded lab, or null if it does not exist or has ended. Removes the file in the latter case. */
export function readStanding(file: string): StandingLab | null {
  let read: unknown;
  try {
    read = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
  if (isStanding(read) && startTimeOf(read.pid) === read.startTime) return read;
  rmSync(file, { force: true });
  return null;
}

/** The file may contain anything, because any user can write to the parent directory. */
function isStanding(read: unknown): read is StandingLab {
  if (!isObject(read)) return false;
  const { pid, startTime, pods } = read;
  return Number.isInteger(pid) && typeof startTime === 'string' && Array.isArray(pods);
}

/** @throws EEXIST if another process was faster, because only one lab can run at a time */
export function writeStanding(
  file: string,
  pid: number,
  pods: readonly StandingPod[],
): StandingLab {
  const standing = { pid, startTime: startTimeOf(pid) ?? '', pods };
  const whole = `${file}.${process.pid}`;
  try {
    writeFileSync(whole, JSON.stringify(standing), { mode: 0o600 });
    // Creating a link is atomic and never replaces an existing file.
    linkSync(whole, file);
  } finally {
    rmSync(whole, { force: true });
  }
  return standing;
}

/**
 * Creates the directory for a user's record if necessary. Any user can create directories there, so one that belongs to
 * another user is refused.
 */
export function ownDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const stats = lstatSync(directory);
  if (stats.isDirectory() && stats.uid === process.getuid?.()) return;
  throw new Problem({
    code: 'lab-folder',
    text: `${directory} does not belong to you, so it cannot store the state of labs`,
    remedy: 'remove it, or use another directory: TMPDIR=DIR ndots lab up',
  });
}

/** The first process in the lab started by `outer`, which is the child of its `unshare`. */
export function firstProcess(outer: number): number | null {
  const children = readFileSync(`/proc/${outer}/task/${outer}/children`, 'utf8').trim();
  return /^\d+/.test(children) ? Number(children.split(' ')[0]) : null;
}

/** Returns a command line that runs a program inside a running lab's mount, process and network namespaces. */
export function wordsInside(standing: StandingLab, words: readonly string[]): readonly string[] {
  return ['nsenter', '-t', String(standing.pid), '--mount', '--pid', '--net', '--', ...words];
}

export function hasEnded({ pid, startTime }: StandingLab): boolean {
  return startTimeOf(pid) !== startTime;
}

/** Field 22 of proc_pid_stat(5). The program name before it may contain anything. Null if there is no such process. */
function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? null : (rest[18] ?? null);
  } catch {
    return null;
  }
}
