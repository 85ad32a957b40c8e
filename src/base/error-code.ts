/** The system's name of an error, e.g. `EADDRINUSE`, or the runtime's, e.g. `ERR_TLS_CERT_ALTNAME_INVALID`; empty if it has none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}

/** Why a file cannot be read, in words and without its path: `no such file or directory`. */
export function whyUnreadable(error: unknown): string {
  const { message } = error as Error;
  return /^E[A-Z0-9]+: ([^,]+), /.exec(message)?.[1] ?? message;
}
