import { createServer } from 'node:net';

import type { Listener, ListenerParts } from './listener.ts';
import { StreamListener } from './stream-listener.ts';

/** DNS over TCP (RFC 7766) at one address. */
export function tcpListener(parts: ListenerParts): Listener {
  return new StreamListener(parts, 'tcp', (_, accept) =>
    createServer({ allowHalfOpen: true, noDelay: true }, accept),
  );
}
