/** Reads the kernel's state of a TCP connection (tcp(7), TCP_INFO). */
import type { Socket } from 'node:net';
import { libc, withLibc } from './libc.ts';
import { Memory } from './memory.ts';

export const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/**
 * `struct tcp_info` of <linux/tcp.h>: its size, and the words used. UNACKNOWLEDGED counts segments; UNSENT counts
 * segments blocked by this machine's packet filter.
 */
const INFO = { BYTES: 148, UNACKNOWLEDGED: 6, SINCE_ACKNOWLEDGED: 14, ROUND_TRIP: 17, UNSENT: 36 };
/** Maximum number of round trips that an acknowledgement may take. */
const PATIENCE = 3;

/** State of a connection: all data is acknowledged, the acknowledgement is still pending, or it is long overdue. */
export type Hearing = 'heard' | 'waiting' | 'deaf';

/**
 * Reports whether the peer's system acknowledges sent data. It does so within about 40 ms even if its program is slow
 * or stopped, but not if it is down or unreachable.
 * @param silenceMs how long an acknowledgement may be missing
 * @returns `heard` also if the system does not report it
 */
export function hearing(socket: Socket, silenceMs: number): Hearing {
  const fd = descriptorOf(socket);
  if (fd < 0) return 'heard';
  const memory = (scratch ??= withLibc(() => new Memory(4 * (LENGTH_AT + 1))));
  if (memory === null) return 'heard';
  const { words, address } = memory;
  words[INFO.UNSENT] = 0;
  words[LENGTH_AT] = INFO.BYTES;
  if (libc().getsockopt(fd, IPPROTO_TCP, TCP_INFO, address, address + 4 * LENGTH_AT) < 0)
    return 'heard';
  if (words[INFO.UNACKNOWLEDGED] === 0 && words[INFO.UNSENT] === 0) return 'heard';
  const roundTripMs = words[INFO.ROUND_TRIP]! / 1000;
  return words[INFO.SINCE_ACKNOWLEDGED]! >= Math.max(silenceMs, PATIENCE * roundTripMs)
    ? 'deaf'
    : 'waiting';
}

const LENGTH_AT = 40;
/** One per thread, never freed; null if TCP_INFO is not available. */
let scratch: Memory | null | undefined;

/** Returns the descriptor, which the runtime does not expose officially, or -1 if unknown. */
export function descriptorOf(socket: Socket): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd ?? -1;
}
