import { errorCode } from '../base/error-code.ts';
import { whyFailed } from '../base/why-failed.ts';
import { STATUS, type GrpcFailure } from '../transport/grpc/grpc-failure.ts';

/** Why etcd did not answer as expected, which determines what to do next. */
export type EtcdFailureKind =
  /** There is no connection, it broke, or this member cannot serve at the moment. Another member may answer. */
  | 'unavailable'
  /** The connection is open but silent. */
  | 'silent'
  | 'tls'
  /** The token has expired, so a new one has to be requested. */
  | 'token'
  /** Wrong user name or password. */
  | 'credentials'
  /** The user lacks permission. */
  | 'forbidden'
  /** The requested revision no longer exists, so everything has to be listed again. */
  | 'compacted'
  /** The answer exceeds the limit. */
  | 'large'
  /** There is no such key or lease. */
  | 'missing'
  /** The answer is not gRPC, or not a message from etcd. */
  | 'malformed'
  /** Any other refusal by etcd. */
  | 'refused';

/**
 * A failed exchange with etcd. `message` describes the failure, and `advice` how to fix it. `advice` is empty if there
 * is nothing to do but wait.
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
 * Creates a failure from a failed call.
 * @param where the endpoint, for messages
 */
export function callFailure({ kind, code, message }: GrpcFailure, where: string): EtcdFailure {
  if (kind === 'status') return statusFailure(code, message, where);
  return new EtcdFailure(kind, `${where}: ${message}`, kind === 'malformed' ? notEtcd : '');
}

const notEtcd = 'check that this is an etcd client port (2379), and that http or https is correct';

/**
 * Creates a failure from a status other than OK.
 * @param where the endpoint, for messages
 */
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
        return new EtcdFailure('credentials', what, 'etcd requires a user; set `credentials`');
      if (text.includes('authentication failed'))
        return new EtcdFailure('credentials', what, 'check user name and password');
      return new EtcdFailure('refused', what);
    default:
      return new EtcdFailure('refused', what);
  }
}

/** Creates a failure below gRPC, in name lookup, connection or TLS. */
export function connectionFailure(error: unknown, where: string): EtcdFailure {
  if (error instanceof EtcdFailure) return error;
  const code = codeOf(error);
  const text = `${where}: ${whyFailed(error)}`;
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || tlsCode.test(code))
    return new EtcdFailure('tls', text, tlsAdvice, error);
  return new EtcdFailure('unavailable', text, '', error);
}

/** Node tries a name's addresses in parallel and combines the errors, of which the first one is sufficient. */
function codeOf(error: unknown): string {
  return error instanceof AggregateError && error.errors.length > 0
    ? codeOf(error.errors[0])
    : errorCode(error);
}

const tlsCode =
  /^(?:CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERROR_IN_CERT|HOSTNAME_|INVALID_CA|CRL_|EPROTO)/;
const tlsAdvice = 'check the CA, certificate and key in `tls`, and that the endpoint uses https';
const forbiddenAdvice =
  'allow the user to read the keys: etcdctl role grant-permission ROLE read PATH/ --prefix';
