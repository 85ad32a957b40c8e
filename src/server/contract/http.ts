/** Replies over HTTP, for plugins that serve some. */
import type { ServerResponse } from 'node:http';

/** A short plain reply with its length, as Go's servers send it: probes and proxies need not read chunks. */
export function answerText(response: ServerResponse, status: number, text: string): void {
  const headers = {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  };
  response.writeHead(status, headers).end(text);
}
