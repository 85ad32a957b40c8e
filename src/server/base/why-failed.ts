/** Explains system, network and TLS failures in plain words instead of the runtime's codes. */
import { errorCode } from './error-code.ts';
import { alertName, tlsAlert } from './tls-alert.ts';

/** Returns a reason that can follow a colon: `nothing listens there`, `no such file or directory`. */
export function whyFailed(error: unknown): string {
  // The runtime tries all of a name's addresses in parallel. The first failure is enough.
  if (error instanceof AggregateError && error.errors.length > 0) return whyFailed(error.errors[0]);
  const code = errorCode(error);
  if (code === 'ENOENT' && isUrl(error)) return 'it is a URL, not a file; download it first';
  const known = reasons[code];
  if (known !== undefined) return known;
  const alert = tlsAlert(error);
  if (alert !== null) return alerts[alert] ?? `the other side closed TLS: ${alertName(alert)}`;
  const message = error instanceof Error ? withoutCall(error.message) : String(error);
  if (/wrong version number/.test(message)) return 'the other side does not use TLS';
  if (message === '') return code;
  // OpenSSL's format: `…:error:CODE:LIBRARY:FUNCTION:REASON:FILE:LINE:`.
  return /error:[0-9A-F]+:[^:]*:[^:]*:([^:\n]+)/.exec(message)?.[1] ?? message;
}

/** Returns true if the missing path is actually a URL. */
function isUrl(error: unknown): boolean {
  const { path } = error as NodeJS.ErrnoException;
  return path !== undefined && /^[a-z][a-z0-9+.-]*:\/\//i.test(path);
}

/** Removes the call and the path that the runtime adds: `ENXIO: no such device or address, open '/dev/x'`. */
function withoutCall(message: string): string {
  return /^E[A-Z0-9]+: ([^,]+), /.exec(message)?.[1] ?? message;
}

const untrusted = 'its certificate is signed by an unknown authority';

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (connection refused)',
  ECONNRESET: 'the other side dropped the connection',
  EPIPE: 'the other side dropped the connection',
  ETIMEDOUT: 'it does not answer (timed out)',
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no route to it',
  ENOTFOUND: 'the name does not exist in DNS',
  EAI_AGAIN: 'the name could not be looked up, because no name server answered',
  ENODATA: 'the name has no address',
  ESERVFAIL: 'the name could not be looked up, because the name server failed',
  ETIMEOUT: 'the name could not be looked up, because no name server answered',
  EADDRINUSE: 'another process uses the address',
  EADDRNOTAVAIL: 'no interface of this machine has the address',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  ENOENT: 'no such file or directory',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a component of its path is not a directory',
  EMFILE: 'too many files are open in this process',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet (check the clocks)',
  CERT_REVOKED: 'its certificate has been revoked',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is valid only for other names',
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_SSL_WRONG_VERSION_NUMBER: 'the other side does not use TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the other side does not use TLS',
  ERR_OSSL_BAD_DECRYPT: 'the key is encrypted, but its passphrase cannot be entered here',
  ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED:
    'the key is encrypted, but its passphrase cannot be entered here',
  ERR_SSL_EE_KEY_TOO_SMALL: "the certificate's key is too small",
  ERR_OSSL_PEM_NO_START_LINE: 'it contains no PEM text',
  ERR_OSSL_PEM_BAD_END_LINE: 'the PEM text is truncated',
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'the key does not belong to the certificate',
  ERR_OSSL_UNSUPPORTED: 'it is not a readable key',
};

/** Explanations of TLS alerts from the peer. */
const alerts: Readonly<Record<number, string>> = {
  40: 'the other side ended the handshake',
  42: 'the other side rejects our certificate',
  44: 'the other side rejects our certificate because it has been revoked',
  45: 'the other side rejects our certificate because it has expired',
  46: 'the other side rejects our certificate',
  48: 'the other side does not know our certificate’s CA',
  49: 'the other side rejects our certificate',
  70: 'the other side uses a different TLS version',
  112: 'the other side has no certificate for this name',
  116: 'the other side requires a client certificate',
};
