/** Sockets and settings of another network namespace than the process lives in (setns(2)). */
import { closeSync, openSync } from 'node:fs';
import { libc, SystemError } from './libc.ts';

const CLONE_NEWNET = 0x40000000;
/** The namespace of the thread that asks. */
const own = '/proc/thread-self/ns/net';

/**
 * Runs `act` in the network namespace that the file stands for (`/run/netns/NAME`). What it opens there stays there: a socket
 * belongs to the namespace in which it was made. `act` must be done when it returns: nothing that waits is still in there.
 * @throws LibcMissing, SystemError
 */
export function inNamespace<T>(path: string, act: () => T): T {
  const [here, there] = [openSync(own, 'r'), openSync(path, 'r')];
  try {
    enter(there);
    try {
      return act();
    } finally {
      enter(here);
    }
  } finally {
    closeSync(here);
    closeSync(there);
  }
}

function enter(descriptor: number): void {
  if (libc().setns(descriptor, CLONE_NEWNET) < 0) throw new SystemError('setns', libc().errno());
}
