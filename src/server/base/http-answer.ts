/** Sends HTTP responses. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Sends a short answer with Content-Length, as Go's servers do, so that probes and proxies need not support chunked
 * encoding.
 */
export function answerText(
  response: ServerResponse,
  status: number,
  text: string | Uint8Array,
  type: string = 'text/plain; charset=utf-8',
): void {
  const headers = { 'content-type': type, 'content-length': Buffer.byteLength(text) };
  response.writeHead(status, headers).end(text);
}

/** Evaluates Accept-Encoding (RFC 9110, section 12.5.3). A weight of 0 forbids a coding. */
export function acceptsGzip({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  for (const coding of String(headers['accept-encoding'] ?? '').split(',')) {
    const [name = '', ...parameters] = coding.split(';').map((part) => part.trim().toLowerCase());
    if (name !== 'gzip') continue;
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    return weight === undefined || Number(weight.slice(2)) > 0;
  }
  return false;
}
