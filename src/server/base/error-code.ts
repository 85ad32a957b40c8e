/**
 * Returns the code of a system error (`EADDRINUSE`) or runtime error (`ERR_TLS_CERT_ALTNAME_INVALID`), or an empty
 * string.
 */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}

/** Returns true if the error means that the path does not exist, rather than that it is unreadable. */
export function isGone(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
