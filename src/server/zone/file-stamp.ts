/** True if files have changed since they were read. */
import { statSync } from 'node:fs';

/** A file, and what it looked like when it was read; null: it was not there. */
export type FileStamp = readonly [path: string, stamp: string | null];

/** What a file looks like: its time, size and place as one text; null: it is not there. */
export function fileStamp(path: string): string | null {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return null;
  }
}

/** True if all of these files are as they were. */
export function areAsRead(files: readonly FileStamp[]): boolean {
  return files.every(([path, stamp]) => fileStamp(path) === stamp);
}
