import { errorCode } from '../base/error-code.ts';
import { whyFailed } from '../base/why-failed.ts';
import { STATUS, type GrpcFailure } from '../transport/grpc/grpc-failure.ts';

/** The reason why etcd did not answer as expected; decides the next step. */
export type EtcdFailureKind =
  /**
   * There is no connection, or it broke, or this member cannot serve now. Another member may
   * answer.
   */
  | 'unavailable'
  /** The connection is open but silent. */
  | 'silent'
  | 'tls'
  /** The token has expired: a new one is requested. */
  | 'token'
  /** User or password are wrong. */
  | 'credentials'
  /** The user may not do this. */
  | 'forbidden'
  /** The requested revision no longer exists: list everything again. */
  | 'compacted'
  /** The answer is larger than the limit. */
  | 'large'
  /** There is no such key or lease. */
  | 'missing'
  /** The answer is not gRPC, or not a message of etcd's. */
  | 'malformed'
  /** Everything else that etcd refuses. */
  | 'refused';

/**
 * One failed exchange with etcd. `message` says what happened, `advice` what to do (empty if only
 * waiting helps).
 */
export class EtcdFailure extends Error {
  override readonly name = 'EtcdFailure';
  readonly kind: EtcdFailureKind;
  readonly advice: string;

  constructor(kind: EtcdFailureKind, text: string, advice = '', cause?: unknown) {
    super(text, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.advice = advice;
  }
}

/**
 * The meaning of a failed call.
 * @param where the endpoint, for people
 */
export function callFailure({ kind, code, message }: GrpcFailure, where: string): EtcdFailure {
  if (kind === 'status') return statusFailure(code, message, where);
  return new EtcdFailure(kind, `${where}: ${message}`, kind === 'malformed' ? notEtcd : '');
}

const notEtcd = 'check that this is the client port of an etcd (2379), and http or https';

/** The failure that a status other than OK stands for. @param where the endpoint, for people */
function statusFailure(code: number, text: string, where: string): EtcdFailure {
  const what = `${where}: ${text === '' ? `gRPC status ${code}` : text}`;
  switch (code) {
    case STATUS.OUT_OF_RANGE:
      return new EtcdFailure(text.includes('compacted') ? 'compacted' : 'refused', what);
    case STATUS.UNAUTHENTICATED:
      return new EtcdFailure('token', what);
    case STATUS.PERMISSION_DENIED:
      return new EtcdFailure('forbidden', what, forbiddenAdvice);
    case STATUS.NOT_FOUND:
      return new EtcdFailure('missing', what);
    case STATUS.UNAVAILABLE:
    case STATUS.CANCELLED:
    case STATUS.DEADLINE_EXCEEDED:
      return new EtcdFailure('unavailable', what);
    case STATUS.INVALID_ARGUMENT:
      if (text.includes('auth store is old')) return new EtcdFailure('token', what);
      if (text.includes('user name is empty'))
        return new EtcdFailure('credentials', what, 'etcd requires a user: give `credentials`');
      if (text.includes('authentication failed'))
        return new EtcdFailure('credentials', what, 'check user name and password');
      return new EtcdFailure('refused', what);
    default:
      return new EtcdFailure('refused', what);
  }
}

/** A failure below gRPC: name lookup, connection, TLS. */
export function connectionFailure(error: unknown, where: string): EtcdFailure {
  if (error instanceof EtcdFailure) return error;
  const code = codeOf(error);
  const text = `${where}: ${whyFailed(error)}`;
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || tlsCode.test(code))
    return new EtcdFailure('tls', text, tlsAdvice, error);
  return new EtcdFailure('unavailable', text, '', error);
}

/**
 * Node tries the addresses of a name in parallel and puts their errors together; the first one
 * says enough.
 */
function codeOf(error: unknown): string {
  return error instanceof AggregateError && error.errors.length > 0
    ? codeOf(error.errors[0])
    : errorCode(error);
}

const tlsCode =
  /^(?:CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERROR_IN_CERT|HOSTNAME_|INVALID_CA|CRL_|EPROTO)/;
const tlsAdvice = 'check the CA, certificate and key of `tls`, and that the endpoint speaks https';
const forbiddenAdvice =
  'grant the user to read the keys: etcdctl role grant-permission ROLE read PATH/ --prefix';
