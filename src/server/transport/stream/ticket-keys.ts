/**
 * Keys of TLS session tickets: the same at all listeners of one certificate, and replaced
 * periodically.
 */
import { builtins } from '../../base/builtins.ts';
import type { ListenerTls } from '../listener.ts';

/** Milliseconds that a key is used. Tickets themselves are valid for five minutes. */
const PERIOD_MS = 6 * 3600 * 1000;

/** The number of the key period that contains this wall clock time. */
export function ticketPeriod(wallMs: number): number {
  return Math.floor(wallMs / PERIOD_MS);
}

/**
 * The key of a period as the runtime expects it: 48 bytes. A client may resume its session at every
 * worker with the same secret, also after a reload. The certificate, the authority and the
 * requirements on clients must be unchanged. Otherwise it needs a full handshake.
 * @returns null if the listener has no secret and makes its own keys
 */
export function ticketKeys(
  { certificate, authority, clientAuth, ticketSecret }: ListenerTls,
  period: number,
): Buffer | null {
  if (ticketSecret === null) return null;
  const crypto = builtins.crypto();
  const terms = crypto
    .createHash('sha256')
    .update(certificate)
    .update('\0')
    .update(authority ?? '');
  const info = `ndots session tickets ${period} ${clientAuth}`;
  return Buffer.from(crypto.hkdfSync('sha256', ticketSecret, terms.digest(), info, 48));
}
