/** True if files have changed since they were read. */
import { statSync } from 'node:fs';

/** A file, and its state when it was read; null: it did not exist. */
export type FileStamp = readonly [path: string, stamp: string | null];

/** Time, size and place of a file as one text; null: it does not exist. */
export function fileStamp(path: string): string | null {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return null;
  }
}

/** True if all of these files are unchanged. */
export function areAsRead(files: readonly FileStamp[]): boolean {
  return files.every(([path, stamp]) => fileStamp(path) === stamp);
}
