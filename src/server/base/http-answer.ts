/** Sends HTTP responses. */
import type { ServerResponse } from 'node:http';

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
