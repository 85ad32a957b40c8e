/** Why a call over gRPC brought nothing. */

/** Decides what the caller does next. */
export type GrpcFailureKind =
  /**
   * There is no connection, or it broke, or the server takes no call now. Another server may take
   * it.
   */
  | 'unavailable'
  /** The connection is open but silent. */
  | 'silent'
  /** The bytes are not gRPC. */
  | 'malformed'
  /** A message is longer than the limit. */
  | 'large'
  /** The server ended the call with a status other than OK. */
  | 'status';

/** Codes of gRPC (grpc/status). */
export const STATUS = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** One call that failed. */
export class GrpcFailure extends Error {
  override readonly name = 'GrpcFailure';
  readonly kind: GrpcFailureKind;
  /** The status, as the server said it or as it would be said. */
  readonly code: number;

  /** @param text what the server said, or what happened; without the server's address */
  constructor(kind: GrpcFailureKind, text: string, code: number = STATUS.UNAVAILABLE) {
    super(text);
    this.kind = kind;
    this.code = code;
  }
}

const names = [
  ...['OK', 'Canceled', 'Unknown', 'InvalidArgument', 'DeadlineExceeded', 'NotFound'],
  ...['AlreadyExists', 'PermissionDenied', 'ResourceExhausted', 'FailedPrecondition', 'Aborted'],
  ...['OutOfRange', 'Unimplemented', 'Internal', 'Unavailable', 'DataLoss', 'Unauthenticated'],
];

/** The name of a code as people write it: `Unavailable`. */
export function statusName(code: number): string {
  return names[code] ?? `Code(${code})`;
}
