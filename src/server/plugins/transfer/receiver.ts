/** The servers that may transfer a zone. */
import { value, wrongForm, type Value } from '../../corefile/word-values.ts';
import type { RemoteServer } from '../../transport/one-exchange.ts';
import { parseServer } from '../../zone/server-address.ts';

/** A server that may transfer a zone and is notified of changes, or any server. */
export type Receiver = RemoteServer | '*';

/** `IP`, `IP:PORT`, `[v6]:PORT`, or `*`. */
export const receiver: Value<Receiver> = value<Receiver>('ADDRESS', ({ text }) => {
  if (text === '*') return '*';
  return (
    parseServer(text) ??
    wrongForm(
      `not an IP address: "${text}"`,
      'Write an address with an optional port (192.0.2.10, [2001:db8::1]:5300), or * for all clients.',
    )
  );
});
