import { isIP } from '../../base/ip.ts';
import { errorCode } from '../../base/error-code.ts';
import { alertName, tlsAlert } from '../../base/tls-alert.ts';
import { type UpstreamExchange, ExchangeError, type ExchangeFailure } from './upstream-exchange.ts';

/** The failed operation, in the words of Go's standard library. */
export type Operation = 'dial' | 'read' | 'write';

/**
 * Converts a socket error to an exchange's error, worded as in Go because alerts and `consolidate` patterns match that
 * text: `dial tcp 10.0.0.1:53: connect: connection refused`, `read udp 10.0.0.9:40000->10.0.0.1:53: read: connection
 * refused`.
 * @param where network and addresses: `tcp 10.0.0.1:53` before there is a connection, `udp 10.0.0.9:40000->10.0.0.1:53`
 * after
 */
export function exchangeError(cause: unknown, operation: Operation, where: string): ExchangeError {
  if (cause instanceof ExchangeError) return cause;
  const code = errorCode(cause);
  const failure = failureOf(code);
  const error = new ExchangeError(failure, textOf(cause, code, operation, where));
  error.cause = cause;
  return error;
}

/** @param where as in `exchangeError` */
export function timeoutError(operation: Operation, where: string): ExchangeError {
  return new ExchangeError('timeout', `${operation} ${where}: i/o timeout`);
}

/** Returns the error for a connection closed by the peer, worded as in Go. */
export function endError(): ExchangeError {
  return new ExchangeError('closed', 'EOF');
}

/** Fails the exchange in a later turn, after the caller of `start` has returned. */
export function failLater(
  exchange: UpstreamExchange,
  error: ExchangeError,
  now: () => number,
): void {
  setImmediate(() => exchange.failed(error, now()));
}

function textOf(cause: unknown, code: string, operation: Operation, where: string): string {
  const known = SYSTEM[code];
  if (known !== undefined) return `${operation} ${where}: ${callOf(cause, operation)}: ${known}`;
  const tls = TLS[code];
  if (tls !== undefined) return `tls: ${tls}`;
  const alert = tlsAlert(cause);
  if (alert !== null) return `remote error: tls: ${alertName(alert)}`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `tls: failed to verify certificate: x509: ${wrongName(cause)}`;
  return `${operation} ${where}: ${cause instanceof Error ? cause.message : String(cause)}`;
}

/** Returns the name of the failed system call. Several calls are reported as `connect`. */
function callOf(cause: unknown, operation: Operation): string {
  if (operation !== 'dial') return operation;
  const call = cause instanceof Error && 'syscall' in cause ? String(cause.syscall) : '';
  return call === 'bind' || call === 'socket' ? call : 'connect';
}

/** Returns the message for a certificate that does not contain the expected name. */
function wrongName(cause: unknown): string {
  const { host, cert } = cause as { host?: string; cert?: { subjectaltname?: string } };
  // As in Go, list the certificate's names if a name was expected, or its addresses if an address was.
  const kind = isIP(host ?? '') === 0 ? 'DNS:' : 'IP Address:';
  const names = (cert?.subjectaltname ?? '')
    .split(', ')
    .filter((name) => name.startsWith(kind))
    .map((name) => name.slice(kind.length));
  if (names.length === 0) return 'certificate relies on legacy Common Name field, use SANs instead';
  return `certificate is valid for ${names.join(', ')}, not ${host ?? 'the server'}`;
}

const SYSTEM: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by peer',
  EPIPE: 'broken pipe',
  EHOSTUNREACH: 'no route to host',
  EHOSTDOWN: 'host is down',
  ENETUNREACH: 'network is unreachable',
  ENETDOWN: 'network is down',
  ETIMEDOUT: 'connection timed out',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files in system',
  EPERM: 'operation not permitted',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'cannot assign requested address',
  EMSGSIZE: 'message too long',
  ENOBUFS: 'no buffer space available',
  EINVAL: 'invalid argument',
};

const UNKNOWN_AUTHORITY =
  'failed to verify certificate: x509: certificate signed by unknown authority';

const TLS: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED:
    'failed to verify certificate: x509: certificate has expired or is not yet valid',
  CERT_NOT_YET_VALID:
    'failed to verify certificate: x509: certificate has expired or is not yet valid',
  ERR_SSL_WRONG_VERSION_NUMBER: 'first record does not look like a TLS handshake',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'first record does not look like a TLS handshake',
};

const FAILURE: Readonly<Record<string, ExchangeFailure>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'closed',
  EPIPE: 'closed',
  ECONNABORTED: 'closed',
  EHOSTUNREACH: 'unreachable',
  EHOSTDOWN: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  ETIMEDOUT: 'timeout',
};

function failureOf(code: string): ExchangeFailure {
  const known = FAILURE[code];
  if (known !== undefined) return known;
  if (
    /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_|EPROTO|ERR_OSSL)/.test(code)
  ) {
    return 'tls';
  }
  return 'local';
}
