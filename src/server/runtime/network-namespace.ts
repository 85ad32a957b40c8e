/** Runs code in another network namespace (setns(2)), for sockets that belong there. */
import { closeSync, openSync } from 'node:fs';
import { libc, SystemError } from './libc.ts';

const CLONE_NEWNET = 0x40000000;

/**
 * Calls `work` with this thread in the network namespace given by a file (`/proc/PID/ns/net`, `/var/run/netns/NAME`),
 * then returns to the original one. Sockets that `work` opens stay in that namespace.
 * @throws SystemError, or the error from opening the file
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
