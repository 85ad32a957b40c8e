import { errorCode } from './bind-problem.ts';
import { ExchangeError, type ExchangeFailure } from './network.ts';

/** What a socket's error means for an exchange. `action` is what was going on, e.g. `dial tcp 10.0.0.1:53`. */
export function exchangeError(cause: unknown, action: string): ExchangeError {
  if (cause instanceof ExchangeError) return cause;
  const code = errorCode(cause);
  const failure = failureOf(code);
  const error = new ExchangeError(failure, `${action}: ${TEXT[code] ?? messageOf(cause)}`);
  error.cause = cause;
  return error;
}

export function timeoutError(action: string): ExchangeError {
  return new ExchangeError('timeout', `${action}: i/o timeout`);
}

/** As CoreDNS words them, since people search for these. */
const TEXT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by peer',
  EPIPE: 'broken pipe',
  EHOSTUNREACH: 'no route to host',
  EHOSTDOWN: 'host is down',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'i/o timeout',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files in system',
  EPERM: 'operation not permitted',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'cannot assign requested address',
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

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
