/** The API's Status object, the body of every refusal. */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: object;
  readonly status: 'Success' | 'Failure';
  readonly message: string;
  readonly reason: string;
  readonly details?: object;
  readonly code: number;
}

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Expired',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** By default, the reason is derived from the HTTP code. */
export function failureStatus(
  code: number,
  message: string,
  reason: string = reasons[code] ?? '',
  details?: object,
): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  };
}

/** Thrown while a request is handled, and then sent as the reply. */
export class Refusal extends Error {
  readonly status: Status;

  constructor(code: number, message: string, reason?: string, details?: object) {
    super(message);
    this.status = failureStatus(code, message, reason, details);
  }
}
