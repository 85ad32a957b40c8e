import { readFileSync } from 'node:fs';

/**
 * The most descriptors (files, sockets) that this process may have open: RLIMIT_NOFILE, `ulimit
 * -n`, which the runtime raises to the hard limit at its start. Infinity if there is no limit or it
 * is unknown.
 */
export function descriptorLimit(file = '/proc/self/limits'): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync(file, 'latin1')) ?? [];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
