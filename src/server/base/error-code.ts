/**
 * The code of a system error, e.g. `EADDRINUSE`, or of the runtime, e.g.
 * `ERR_TLS_CERT_ALTNAME_INVALID`; empty if it has none.
 */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}

/**
 * True if the error of a path says that nothing is there, rather than that it could not be read.
 */
export function isGone(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
