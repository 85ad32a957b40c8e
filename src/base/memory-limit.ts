/** How much memory this process may take. */
import { join } from 'node:path';
import {
  CONTROL_GROUPS,
  groupFolders,
  groupLines,
  type ControlGroupFiles,
} from './control-groups.ts';

/** More than any machine has: what version 1 shows where nothing is limited. */
const NO_LIMIT = 2 ** 48;
/** Of version 2, where a process is throttled and where it is killed; of version 1. */
const FILES = ['memory.high', 'memory.max', 'memory.limit_in_bytes'];

/**
 * Bytes that the process may take (`resources.limits.memory` of a container); Infinity without a limit. Of nested control groups the tightest
 * counts, which `process.constrainedMemory` does not see. A file that holds anything but a number of bytes says nothing.
 */
export function memoryLimit(files: ControlGroupFiles = CONTROL_GROUPS): number {
  let limit = Infinity;
  for (const folder of groupFolders(files, 'memory'))
    for (const file of FILES) {
      const [text = ''] = groupLines(join(folder, file));
      const bytes = /^\d+$/.test(text) ? Number(text) : 0;
      if (bytes > 0 && bytes < NO_LIMIT) limit = Math.min(limit, bytes);
    }
  return limit;
}
