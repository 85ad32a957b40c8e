/** TLS alerts that the peer uses to end a connection (RFC 8446 section 6). */

/**
 * Returns the alert number, or null if the error is not an alert. The runtime reports the number only in the message
 * text.
 */
export function tlsAlert(error: unknown): number | null {
  const found = error instanceof Error ? /SSL alert number (\d+)/.exec(error.message) : null;
  return found === null ? null : Number(found[1]);
}

/** Returns an alert's name, in the words of Go's TLS library. */
export function alertName(alert: number): string {
  return names[alert] ?? `alert(${alert})`;
}

const names: Readonly<Record<number, string>> = {
  10: 'unexpected message',
  20: 'bad record MAC',
  22: 'record overflow',
  40: 'handshake failure',
  42: 'bad certificate',
  43: 'unsupported certificate',
  44: 'revoked certificate',
  45: 'expired certificate',
  46: 'unknown certificate',
  47: 'illegal parameter',
  48: 'unknown certificate authority',
  49: 'access denied',
  50: 'error decoding message',
  51: 'error decrypting message',
  70: 'protocol version not supported',
  71: 'insufficient security level',
  80: 'internal error',
  86: 'inappropriate fallback',
  90: 'user canceled',
  109: 'missing extension',
  110: 'unsupported extension',
  112: 'unrecognized name',
  116: 'certificate required',
  120: 'no application protocol',
};
