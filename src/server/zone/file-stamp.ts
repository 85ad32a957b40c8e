/** Detects whether files have changed since they were read. */
import { statSync } from 'node:fs';

/** A file and its state when it was read, which is null if it did not exist. */
export type FileStamp = readonly [path: string, stamp: string | null];

/** Returns a file's time, size and inode as a single text, or null if the file does not exist. */
export function fileStamp(path: string): string | null {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return null;
  }
}

/** Returns true if none of these files have changed. */
export function areAsRead(files: readonly FileStamp[]): boolean {
  return files.every(([path, stamp]) => fileStamp(path) === stamp);
}
