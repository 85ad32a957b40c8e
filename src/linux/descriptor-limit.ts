import { readFileSync } from 'node:fs';

/**
 * How many descriptors (files, sockets) this process may have open at a time: RLIMIT_NOFILE, `ulimit -n`, which the runtime
 * raises to the hard limit when it starts. Infinity if there is no limit, or the system does not tell.
 */
export function descriptorLimit(file = '/proc/self/limits'): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync(file, 'latin1')) ?? [];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
