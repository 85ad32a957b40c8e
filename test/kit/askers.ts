/** Processes behind queries, for tests of how they are found and shown. */
import type { Asker } from '../../src/tools/capture/pair/asker.ts';

/** A process outside a container. */
export function processAsker(pid: number, command: string = `p${pid}`): Asker {
  return {
    ...{ container: null, cgroup: '/', uid: 0, why: null },
    processes: [{ pid, command, commandLine: '', parent: null }],
  };
}
