/** The system's name of an error, e.g. `EADDRINUSE`, or the runtime's, e.g. `ERR_TLS_CERT_ALTNAME_INVALID`; empty if it has none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}
