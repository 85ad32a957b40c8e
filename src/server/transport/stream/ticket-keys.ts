/**
 * TLS session ticket keys, which are shared by all listeners with the same certificate and are replaced periodically.
 */
import { builtins } from '../../base/builtins.ts';
import type { ListenerTls } from '../listener.ts';

/** Milliseconds for which a key is used. The tickets themselves are valid for five minutes. */
const PERIOD_MS = 6 * 3600 * 1000;

/** Returns the number of the key period that contains this wall-clock time. */
export function ticketPeriod(wallMs: number): number {
  return Math.floor(wallMs / PERIOD_MS);
}

/**
 * Returns a period's key in the runtime's format, 48 bytes. A client can resume its session on every worker with the
 * same secret, even after a reload. The certificate, the CA and the client requirements must be unchanged, otherwise a
 * full handshake is needed.
 * @returns null if the listener has no secret and generates its own keys
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
