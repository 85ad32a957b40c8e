/** Copies a message out of buffers that will be overwritten by the next packet. */
import type { PassingMessage } from '../read/packets/dissect.ts';

export function ownMessage(message: PassingMessage): PassingMessage {
  const { bytes, start, end, head, addressesAt: at, family } = message;
  const own = bytes.slice(start, end);
  const addresses = head.slice(at, at + (family === 4 ? 8 : 32));
  return { ...message, bytes: own, start: 0, end: own.length, head: addresses, addressesAt: 0 };
}
