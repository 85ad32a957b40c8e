/** The ways a gRPC call can fail. */

/** Determines what the caller does next. */
export type GrpcFailureKind =
  /** There is no connection, it broke, or the server is not accepting calls at the moment. Another server might. */
  | 'unavailable'
  /** The connection is open but silent. */
  | 'silent'
  /** The bytes are not gRPC. */
  | 'malformed'
  /** A message exceeds the limit. */
  | 'large'
  /** The server ended the call with a status other than OK. */
  | 'status';

/** gRPC status codes (grpc/status). */
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

export class GrpcFailure extends Error {
  override readonly name = 'GrpcFailure';
  readonly kind: GrpcFailureKind;
  /** The status sent by the server, or the equivalent for a local failure. */
  readonly code: number;

  /** @param text the server's message, or a description of the failure, without the server's address */
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

export function statusName(code: number): string {
  return names[code] ?? `Code(${code})`;
}
