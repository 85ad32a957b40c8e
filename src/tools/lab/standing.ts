/**
 * Records a lab that stays up until it is taken down, so that later processes find it and do not confuse it
 * with others.
 */
import { linkSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isObject } from '../../server/base/json-object.ts';
import { Problem } from '../../server/base/problem.ts';
import type { LabPod } from './cluster-plan.ts';

/** The fields of a pod that another process needs. */
export type StandingPod = Pick<
  LabPod,
  'namespace' | 'pod' | 'name' | 'node' | 'addresses' | 'files'
>;

export interface StandingLab {
  /** The id, outside the lab, of the lab's first process. */
  readonly pid: number;
  /** The start time of that process in the kernel's ticks, because process ids are reused. */
  readonly startTime: string;
  readonly pods: readonly StandingPod[];
}

/** The recorded lab; null: there is none, or it has ended. The file of a lab that has ended is removed. */
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

/** The file may contain anything, because any user may write in the parent directory. */
function isStanding(read: unknown): read is StandingLab {
  if (!isObject(read)) return false;
  const { pid, startTime, pods } = read;
  return Number.isInteger(pid) && typeof startTime === 'string' && Array.isArray(pods);
}

/** @throws EEXIST if another one was faster: only one lab can run at a time */
export function writeStanding(
  file: string,
  pid: number,
  pods: readonly StandingPod[],
): StandingLab {
  const standing = { pid, startTime: startTimeOf(pid) ?? '', pods };
  const whole = `${file}.${process.pid}`;
  try {
    writeFileSync(whole, JSON.stringify(standing), { mode: 0o600 });
    // A link is created atomically, and never replaces an existing file.
    linkSync(whole, file);
  } finally {
    rmSync(whole, { force: true });
  }
  return standing;
}

/**
 * Creates the directory of a user's record if it does not exist. Any user can create directories there, so
 * one of another user is refused.
 */
export function ownFolder(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const stats = lstatSync(directory);
  if (stats.isDirectory() && stats.uid === process.getuid?.()) return;
  throw new Problem({
    code: 'lab-folder',
    text: `${directory} is not a directory of yours; it stores the state of labs`,
    remedy: 'remove it, or use another directory: TMPDIR=DIR ndots lab up',
  });
}

/** The first process of the lab that was started by `outer`: the child of its `unshare`. */
export function firstProcess(outer: number): number | null {
  const children = readFileSync(`/proc/${outer}/task/${outer}/children`, 'utf8').trim();
  return /^\d+/.test(children) ? Number(children.split(' ')[0]) : null;
}

/** The command line that runs a program in a running lab: in its mounts, processes and network. */
export function wordsInside(standing: StandingLab, words: readonly string[]): readonly string[] {
  return ['nsenter', '-t', String(standing.pid), '--mount', '--pid', '--net', '--', ...words];
}

export function hasEnded({ pid, startTime }: StandingLab): boolean {
  return startTimeOf(pid) !== startTime;
}

/**
 * Field 22 of proc_pid_stat(5). The program's name before it may contain anything. Null: there is no such
 * process.
 */
function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? null : (rest[18] ?? null);
  } catch {
    return null;
  }
}
