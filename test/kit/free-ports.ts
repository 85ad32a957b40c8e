/** Ports for servers that tests start. */
import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { createServer, Server } from 'node:net';

/**
 * These ports are below the system's automatic range (`ip_local_port_range`, 32768 and above by default). Otherwise, a
 * client in a concurrent test could be assigned one before its intended owner uses it.
 */
const PORT_FIRST = 20_000;
const PORT_END = 32_768;

/** A tuple with this number of ports if the number is known, otherwise a list. */
type Ports<Count extends number, Taken extends number[] = []> = number extends Count
  ? number[]
  : Taken['length'] extends Count
    ? Taken
    : Ports<Count, [...Taken, number]>;

/**
 * Ports on 127.0.0.1 that are currently free for UDP and TCP. They stay free unless another test picks the same one.
 */
export async function freePorts<Count extends number>(count: Count): Promise<Ports<Count>> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(PORT_FIRST, PORT_END);
    if ((await isFree(createServer(), port)) && (await isFree(createSocket('udp4'), port)))
      ports.add(port);
  }
  return [...ports] as Ports<Count>;
}

function isFree(socket: Server | Socket, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once('error', () => resolve(false));
    const close = (): unknown => socket.close(() => resolve(true));
    if (socket instanceof Server) socket.listen(port, '127.0.0.1', close);
    else socket.bind(port, '127.0.0.1', close);
  });
}
