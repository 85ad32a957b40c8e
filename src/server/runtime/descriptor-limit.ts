import { readFileSync } from 'node:fs';

/**
 * Returns the maximum number of open descriptors (files, sockets) for this process: RLIMIT_NOFILE, `ulimit -n`. The
 * runtime raises it to the hard limit on startup. Returns Infinity if it is unlimited or unknown.
 */
export function descriptorLimit(file = '/proc/self/limits'): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync(file, 'latin1')) ?? [];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
