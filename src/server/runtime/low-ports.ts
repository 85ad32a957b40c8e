/**
 * Lets an unprivileged user bind ports below 1024. The image's runtime has the file capability
 * `cap_net_bind_service=+p`. It is only permitted, so the kernel starts the program even if the pod drops that
 * capability. It is not effective, so the program raises it (docs/decisions/capabilities.md).
 */
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';

/** <asm/unistd.h> */
const CALLS = process.arch === 'arm64' ? { get: 90, set: 91 } : { get: 125, set: 126 };
/** <linux/capability.h> */
const VERSION_3 = 0x2008_0522;
const NET_BIND_SERVICE = 1 << 10;
/** Word offsets in the header (version, thread) and in the sets of capabilities 0 to 31 that follow it. */
const EFFECTIVE = 2;
const PERMITTED = 3;
const SIZE = 32;

const PRIVILEGED = 1024;

/**
 * Lets this thread bind the port, if the process may do so at all. Capabilities are per thread, so each thread that
 * binds calls this first. If the system refuses, nothing changes, and the bind fails with the reason.
 */
export function allowLowPort(port: number): void {
  if (port === 0 || port >= PRIVILEGED || process.platform !== 'linux') return;
  withMemory(SIZE, ({ address, words }) => {
    words[0] = VERSION_3;
    const sets = address + 4 * EFFECTIVE;
    if (libc().syscall(CALLS.get, address, sets, 0) !== 0) return;
    const missing = words[PERMITTED]! & ~words[EFFECTIVE]! & NET_BIND_SERVICE;
    if (missing === 0) return;
    words[EFFECTIVE]! |= NET_BIND_SERVICE;
    libc().syscall(CALLS.set, address, sets, 0);
  });
}
