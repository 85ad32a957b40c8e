/** Determines how much memory this process may use. */
import { join } from 'node:path';
import {
  CONTROL_GROUPS,
  groupDirectories,
  groupLines,
  type ControlGroupFiles,
} from '../base/control-groups.ts';

/** More than any machine has: cgroup v1 reports such a number if there is no limit. */
const NO_LIMIT = 2 ** 48;
/** Version 2: the throttling and kill limits. Version 1: its only limit. */
const FILES = ['memory.high', 'memory.max', 'memory.limit_in_bytes'];

/**
 * Returns the number of bytes the process may use (`resources.limits.memory` of a container), or Infinity. Among nested
 * control groups the tightest limit applies, which `process.constrainedMemory` does not consider. A file that does not
 * contain a number is ignored.
 */
export function memoryLimit(files: ControlGroupFiles = CONTROL_GROUPS): number {
  let limit = Infinity;
  for (const directory of groupDirectories(files, 'memory'))
    for (const file of FILES) {
      const [text = ''] = groupLines(join(directory, file));
      const bytes = /^\d+$/.test(text) ? Number(text) : 0;
      if (bytes > 0 && bytes < NO_LIMIT) limit = Math.min(limit, bytes);
    }
  return limit;
}
