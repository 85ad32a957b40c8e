/** Sends bytes to a server on loopback from a client's address, over UDP or TCP, and returns the reply. */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import type { RandomQuery } from './queries.ts';

/** The milliseconds without a reply that count as silence. This is longer than a server needs on a busy machine. */
const SILENCE_MS = 1500;

/** The reply from HOST:PORT, or null if there is none. */
export function exchange(
  { bytes, client, overTcp }: RandomQuery,
  port: number,
  host: string,
): Promise<Uint8Array | null> {
  return overTcp ? overStream(bytes, port, client, host) : overDatagram(bytes, port, client, host);
}

function overDatagram(
  bytes: Uint8Array,
  port: number,
  client: string,
  host: string,
): Promise<Uint8Array | null> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const finish = (reply: Uint8Array | null): void => {
      clearTimeout(timer);
      socket.close();
      resolve(reply);
    };
    const timer = setTimeout(() => finish(null), SILENCE_MS);
    socket.on('message', finish);
    socket.on('error', () => finish(null));
    socket.bind(0, client, () => socket.send(bytes, port, host));
  });
}

function overStream(
  bytes: Uint8Array,
  port: number,
  client: string,
  host: string,
): Promise<Uint8Array | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host, localAddress: client });
    let held = Buffer.alloc(0);
    let done = false;
    const finish = (reply: Uint8Array | null): void => {
      if (done) return;
      done = true;
      clearTimeout(timer);
      socket.destroy();
      resolve(reply);
    };
    const timer = setTimeout(() => finish(null), SILENCE_MS);
    socket.on('connect', () =>
      socket.write(Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes])),
    );
    socket.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      if (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0))
        finish(held.subarray(2, 2 + held.readUInt16BE(0)));
    });
    socket.on('error', () => finish(null));
    socket.on('close', () => finish(null));
  });
}
