/**
 * Closes TCP connections whose peer no longer acknowledges anything, with TCP_USER_TIMEOUT (tcp(7)).
 *
 * Gain: a peer that vanished without closing is noticed after the given time. By default, Linux retransmits for about
 * 15 minutes (tcp_retries2), and keep-alive probes are only sent while no data is in flight. There is no switch: where
 * the foreign function interface is missing, the default applies. Tried with Node 24 and 26.
 */
import type { Socket } from 'node:net';
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';
import { descriptorOf, IPPROTO_TCP } from './tcp-state.ts';

const TCP_USER_TIMEOUT = 18;

/**
 * Makes the kernel close the connection when data has not been acknowledged for this many milliseconds.
 * @returns whether it will
 */
export function timeOutPeer(socket: Socket, ms: number): boolean {
  const fd = descriptorOf(socket);
  if (fd < 0) return false;
  const done = withMemory(16, ({ words, address }) => {
    words[0] = ms;
    return libc().setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, address, 4) >= 0;
  });
  return done ?? false;
}
