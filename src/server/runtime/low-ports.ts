/**
 * The right of an ordinary user to bind ports below 1024. The image's runtime has the file
 * capability `cap_net_bind_service=+p`: permitted, so that the kernel still starts it where the pod
 * drops that capability, but not effective, so that the program raises it
 * (docs/decisions/capabilities.md).
 */
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';

/** <asm/unistd.h> */
const CALLS = process.arch === 'arm64' ? { get: 90, set: 91 } : { get: 125, set: 126 };
/** <linux/capability.h> */
const VERSION_3 = 0x2008_0522;
const NET_BIND_SERVICE = 1 << 10;
/** Words of the header (version, thread) and, after it, of the sets of capabilities 0 to 31. */
const EFFECTIVE = 2;
const PERMITTED = 3;
const SIZE = 32;

const PRIVILEGED = 1024;

/**
 * Lets this thread bind to the port if the process may do so at all. Capabilities are per thread:
 * each thread that binds calls this first. Nothing changes where the system does not allow it; the
 * bind then fails and says why.
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
