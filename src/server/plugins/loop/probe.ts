/** Sends the loop detection query. */
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

/** Sends a query over UDP. Resolves to true if a reply with the same ID arrives in time. */
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
    // Does not keep a stopped server running.
    socket.unref();
    const done = (answered: boolean): void => {
      timer.cancel();
      socket.removeAllListeners();
      socket.on('error', () => {});
      try {
        socket.close();
      } catch {
        // Already closed.
      }
      resolve(answered);
    };
    const timer = clock.after(timeoutMs, () => done(false));
    socket.on('error', () => done(false));
    socket.on('message', (reply) => {
      if (reply.length >= HEADER.SIZE && reply[0] === message[0] && reply[1] === message[1])
        done(true);
    });
    // A connect callback would also be called on failure; without one, failures are reported as error events.
    socket.once('connect', () => {
      socket.send(message, (error) => {
        if (error !== null) done(false);
      });
    });
    socket.connect(to.port, to.host);
  });

/**
 * Returns the address to use for reaching a plain DNS listen address (`dns://:53`, `dns://[::1]:5353`). Returns null
 * for other transports. It is also null for port 0, because only the listener knows which port the system chose.
 */
export function reach(server: string): Address | null {
  if (!server.startsWith(PLAIN)) return null;
  const { host = '', port = null } = splitHostPort(server.slice(PLAIN.length)) ?? {};
  if (port === null || port === 0) return null;
  if (host === '' || host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}
