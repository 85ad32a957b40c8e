/** Classifies the first bytes of a TCP segment, to show how other programs' connections are doing. */

/** The segment starts an HTTP/1 request. */
export const REQUEST = 1;
/** The segment starts a TLS handshake. */
export const CLIENT_HELLO = 2;
/** Codes from here on are fatal TLS alerts. The rest is the alert description (RFC 8446, section 6). */
export const ALERT = 1000;

/** A request's method or a response's protocol (RFC 9112, sections 3 and 4). */
const REQUEST_LINE = /^(?:GET|POST|PUT|HEAD|DELETE|PATCH|OPTIONS) \//;
const STATUS_LINE = /^HTTP\/1\.[01] ([1-5]\d\d)/;
const LONGEST_LINE = 12;
/** TLS records (RFC 8446, section 5.1). */
const TLS = { alert: 21, handshake: 22, major: 3, clientHello: 1, fatal: 2, plainAlertBytes: 2 };

/**
 * Returns `REQUEST`, `CLIENT_HELLO`, an HTTP response's status, `ALERT` plus its description, or 0 for anything else.
 */
export function payloadCode(bytes: Uint8Array, at: number, end: number): number {
  if (at + 5 >= end) return 0;
  const first = bytes[at]!;
  if (bytes[at + 1] === TLS.major) {
    if (first === TLS.handshake) return bytes[at + 5] === TLS.clientHello ? CLIENT_HELLO : 0;
    const size = (bytes[at + 3]! << 8) | bytes[at + 4]!;
    // An encrypted alert is longer.
    if (first !== TLS.alert || size !== TLS.plainAlertBytes || at + 6 >= end) return 0;
    return bytes[at + 5] === TLS.fatal ? ALERT + bytes[at + 6]! : 0;
  }
  // Not a capital letter.
  if (first < 0x41 || first > 0x5a) return 0;
  let text = '';
  for (let i = at; i < Math.min(end, at + LONGEST_LINE); i++)
    text += String.fromCharCode(bytes[i]!);
  const status = STATUS_LINE.exec(text);
  if (status !== null) return Number(status[1]);
  return REQUEST_LINE.test(text) ? REQUEST : 0;
}
