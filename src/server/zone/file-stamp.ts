/** Detects files that have changed since they were read. */
import { statSync } from 'node:fs';

/** A file, and its state when it was read; null: it did not exist. */
export type FileStamp = readonly [path: string, stamp: string | null];

/** Returns a file's time, size and inode as one text, or null if it does not exist. */
export function fileStamp(path: string): string | null {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return null;
  }
}

/** Returns true if all of these files are unchanged. */
export function areAsRead(files: readonly FileStamp[]): boolean {
  return files.every(([path, stamp]) => fileStamp(path) === stamp);
}
