import { isIP, parseAddress, plainAddress } from '../base/ip.ts';
import type { RemoteServer } from '../net/one-exchange.ts';

/** `IP`, `IP:PORT`, `[v6]:PORT`; the port is 53 if none is named. null: it is no such address. */
export function parseServer(text: string): RemoteServer | null {
  if (isIP(text.replace(/%.*/s, '')) !== 0) return { host: text, port: 53 };
  const parts = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text);
  const host = parts?.[1] ?? parts?.[2] ?? '';
  const port = Number(parts?.[3] ?? 53);
  if (parts === null || isIP(host.replace(/%.*/s, '')) === 0 || port > 65_535) return null;
  return { host, port };
}

/** Whether a client's address (4 or 16 bytes) is that of the server. */
export function isServer(
  server: RemoteServer,
  address: Uint8Array,
  at: number,
  family: 4 | 6,
): boolean {
  const own = parseAddress(plainAddress(server.host));
  const size = family === 4 ? 4 : 16;
  if (own === null || own.length !== size) return false;
  for (let i = 0; i < size; i++) if (own[i] !== address[at + i]) return false;
  return true;
}
