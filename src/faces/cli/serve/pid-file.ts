/** Manages the pid file of the server process. */
import { lstatSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import type { Log } from '../../../server/base/log.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

/** Writes the file. As in CoreDNS, the server only logs an error if this fails. */
export function writePidFile(file: string, pid: number, log: Log): void {
  try {
    writeFileSync(file, `${pid}\n`);
  } catch (error) {
    log.error(
      `Could not write pid file: ${whyFailed(error)}; check that the directory exists and is writable`,
    );
  }
}

/** Removes the file if it still contains this process's id, but never a device or the next server's file. */
export function removePidFile(file: string, pid: number): void {
  try {
    if (!lstatSync(file).isFile()) return;
    if (readFileSync(file, 'utf8') === `${pid}\n`) unlinkSync(file);
  } catch {
    // The file was already removed.
  }
}
