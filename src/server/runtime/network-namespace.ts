/** Runs code in another network namespace (setns(2)), for sockets that belong there. */
import { closeSync, openSync } from 'node:fs';
import { libc, SystemError } from './libc.ts';

const CLONE_NEWNET = 0x40000000;

/**
 * Calls `work` with this thread in the network namespace of that file (`/proc/PID/ns/net`,
 * `/var/run/netns/NAME`). Sockets that `work` opens stay there; the thread returns.
 * @throws SystemError, or the error of opening the file
 */
export function inNetworkNamespace<T>(path: string, work: () => T): T {
  const own = openSync('/proc/thread-self/ns/net', 'r');
  try {
    const other = openSync(path, 'r');
    try {
      enter(other);
    } finally {
      closeSync(other);
    }
    try {
      return work();
    } finally {
      enter(own);
    }
  } finally {
    closeSync(own);
  }
}

function enter(fd: number): void {
  if (libc().setns(fd, CLONE_NEWNET) < 0) throw new SystemError('setns', libc().errno());
}
