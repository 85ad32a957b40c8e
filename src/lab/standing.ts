/** Labs that stand until they are taken down: where they are written down, and how to tell them from processes that came later. */
import { linkSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isObject } from '../base/json-object.ts';
import { Problem } from '../base/problem.ts';
import type { LabPod } from './plan.ts';

/** A pod of a lab that stands, as another process needs it. */
export type StandingPod = Pick<
  LabPod,
  'namespace' | 'pod' | 'name' | 'node' | 'addresses' | 'files'
>;

/** What is written down of a lab. */
export interface StandingLab {
  /** Its first process, as this machine counts. */
  readonly pid: number;
  /** When that began, in the kernel's ticks: one day another process has its number. */
  readonly startTime: string;
  readonly pods: readonly StandingPod[];
}

/** The lab that a file tells of; null: there is none, or not any more. A file of a lab that has ended is removed. */
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

/** What lies where anybody's programs write may be anything. */
function isStanding(read: unknown): read is StandingLab {
  if (!isObject(read)) return false;
  const { pid, startTime, pods } = read;
  return Number.isInteger(pid) && typeof startTime === 'string' && Array.isArray(pods);
}

/** Writes down a lab that stands. Throws EEXIST if another one was faster: there is one at a time. */
export function writeStanding(
  file: string,
  pid: number,
  pods: readonly StandingPod[],
): StandingLab {
  const standing = { pid, startTime: startTimeOf(pid) ?? '', pods };
  const whole = `${file}.${process.pid}`;
  try {
    writeFileSync(whole, JSON.stringify(standing), { mode: 0o600 });
    // Whole or not at all, and never in the place of another.
    linkSync(whole, file);
  } finally {
    rmSync(whole, { force: true });
  }
  return standing;
}

/**
 * The folder in which a user's lab is written down, made if it is not there. It lies where anybody may make folders: one that is not the
 * user's own is refused.
 */
export function ownFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stats = lstatSync(folder);
  if (stats.isDirectory() && stats.uid === process.getuid?.()) return;
  throw new Problem({
    code: 'lab-folder',
    text: `${folder} is not a folder of yours: labs are written down there`,
    remedy: 'remove it, or name another place: TMPDIR=FOLDER ndots lab up',
  });
}

/** The first process of a lab that `outer` was started for: the child of its `unshare`. */
export function firstProcess(outer: number): number | null {
  const children = readFileSync(`/proc/${outer}/task/${outer}/children`, 'utf8').trim();
  return /^\d+/.test(children) ? Number(children.split(' ')[0]) : null;
}

/** Words by which a program runs within a lab that stands: in its mounts, its processes and its network. */
export function wordsInside(standing: StandingLab, words: readonly string[]): readonly string[] {
  return ['nsenter', '-t', String(standing.pid), '--mount', '--pid', '--net', '--', ...words];
}

/** Whether a lab has ended. */
export function hasEnded({ pid, startTime }: StandingLab): boolean {
  return startTimeOf(pid) !== startTime;
}

/** Field 22 of proc_pid_stat(5), behind the name, which may hold anything; null: there is no such process. */
function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? null : (rest[18] ?? null);
  } catch {
    return null;
  }
}
