/** Keys of TLS session tickets that all listeners of one certificate have alike, and that change with time. */
import { builtins } from '../base/builtins.ts';
import type { ListenerTls } from './listener.ts';

/** How long a key is used, milliseconds. Tickets themselves are good for five minutes. */
const PERIOD_MS = 6 * 3600 * 1000;

/** Which period of keys this time of the wall clock lies in. */
export function ticketPeriod(wallMs: number): number {
  return Math.floor(wallMs / PERIOD_MS);
}

/**
 * The key of a period, as the runtime takes it: 48 bytes. A client may resume at every worker that has the same secret, after a reload
 * too, as long as certificate, authority and what is asked of clients stay: who was welcome by other terms shakes hands anew.
 * @returns null: the listener has no secret, and makes keys for itself
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
