/**
 * The browser machine's network, which does not exist. Replaces `node:net`, `node:dgram` and `node:dns/promises` when
 * the in-memory server is bundled for the playground. That server opens no sockets, so no query gets here.
 */
import { isIP } from '../../../server/base/ip.ts';

function unavailable(): never {
  throw Object.assign(new Error('this page has no sockets'), { code: 'ENETUNREACH' });
}

export { unavailable as connect, unavailable as createServer, unavailable as createSocket };
export { unavailable as lookup };

export function isIPv6(text: string): boolean {
  return isIP(text) === 6;
}

/** Fails when used, like any resolver without a network. */
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
