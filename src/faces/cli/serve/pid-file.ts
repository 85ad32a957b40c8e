/** Writes the file with the id of the server process. */
import { lstatSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import type { Log } from '../../../server/base/log.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

/**
 * Without its pid file the server still serves, as CoreDNS does: the error is a line, not an end.
 */
export function writePidFile(file: string, pid: number, log: Log): void {
  try {
    writeFileSync(file, `${pid}\n`);
  } catch (error) {
    log.error(
      `Could not write pid file: ${whyFailed(error)}; check that the directory exists and is writable`,
    );
  }
}

/**
 * Removes the file if it still contains this process's id: not a device, and not the file of the
 * next server.
 */
export function removePidFile(file: string, pid: number): void {
  try {
    if (!lstatSync(file).isFile()) return;
    if (readFileSync(file, 'utf8') === `${pid}\n`) unlinkSync(file);
  } catch {
    // It was removed already.
  }
}
