/**
 * The network of the machine in the browser: there is none. It replaces `node:net`, `node:dgram`
 * and `node:dns/promises` where the server in memory is bundled for the playground. A server in
 * memory opens no socket, so no query reaches these functions.
 */
import { isIP } from '../../../server/base/ip.ts';

function unavailable(): never {
  throw Object.assign(new Error('this page has no sockets'), { code: 'ENETUNREACH' });
}

export { unavailable as connect, unavailable as createServer, unavailable as createSocket };
export { unavailable as lookup };

/** As in Node. */
export function isIPv6(text: string): boolean {
  return isIP(text) === 6;
}

/** Fails on use, as all names do without a network. */
export class Resolver {
  setServers(): void {
    unavailable();
  }
}

const network: Readonly<Record<string, unknown>> = {
  connect: unavailable,
  createServer: unavailable,
  isIPv6,
};
export default network;
