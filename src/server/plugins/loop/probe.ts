/** The query that looks for a loop, on its way out. */
import { createSocket, type SocketType } from 'node:dgram';
import { isIP, splitHostPort } from '../../base/ip.ts';
import type { Clock } from '../../base/clock.ts';
import { HEADER } from '../../wire/iana.ts';

/** Prefix of plain DNS listen addresses. */
const PLAIN = 'dns://';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Sends a query over UDP; true: a reply with its id came in time. */
export type LoopProbe = (
  message: Uint8Array,
  to: Address,
  timeoutMs: number,
  clock: Clock,
) => Promise<boolean>;

export const udpProbe: LoopProbe = (message, to, timeoutMs, clock) =>
  new Promise((resolve) => {
    const type: SocketType = isIP(to.host) === 6 ? 'udp6' : 'udp4';
    const socket = createSocket(type);
    // A server that has ended waits for nothing.
    socket.unref();
    const done = (answered: boolean): void => {
      timer.cancel();
      socket.removeAllListeners();
      socket.on('error', () => {});
      try {
        socket.close();
      } catch {
        // Closed already.
      }
      resolve(answered);
    };
    const timer = clock.after(timeoutMs, () => done(false));
    socket.on('error', () => done(false));
    socket.on('message', (reply) => {
      if (reply.length >= HEADER.SIZE && reply[0] === message[0] && reply[1] === message[1])
        done(true);
    });
    // A callback of connect would be called for a failure, too; without one that is an error event.
    socket.once('connect', () => {
      socket.send(message, (error) => {
        if (error !== null) done(false);
      });
    });
    socket.connect(to.port, to.host);
  });

/**
 * The address to reach a plain DNS listen address (`dns://:53`, `dns://[::1]:5353`) at; null for
 * other transports, and for port 0: which one the system chose is known only to the listener.
 */
export function reach(server: string): Address | null {
  if (!server.startsWith(PLAIN)) return null;
  const { host = '', port = null } = splitHostPort(server.slice(PLAIN.length)) ?? {};
  if (port === null || port === 0) return null;
  if (host === '' || host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}
