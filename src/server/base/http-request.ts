/**
 * Sends one HTTP/1.1 request with Node's client. Lists from the API server have a reader of their own; see
 * docs/decisions/kube-client.md.
 */
import type { ClientRequest, RequestOptions } from 'node:http';
import { builtins } from './builtins.ts';
import type { Clock } from './clock.ts';

/** A request and its limits. Each request uses a new connection. */
export interface HttpRequest {
  readonly url: URL;
  /** Method (GET by default), headers, an alternative address and TLS options. */
  readonly options?: RequestOptions & { readonly ca?: string; readonly cert?: string };
  readonly body?: string | Buffer;
  readonly clock: Clock;
  /** Timeout for the whole request. */
  readonly waitMs: number;
  /** Error message on timeout. */
  readonly late: string;
  /** Maximum size of the response body, in bytes. */
  readonly bytesMax: number;
  /** Error message if the body is longer. */
  readonly tooLong: string;
  /** Receives each chunk of the body, which is then not collected. If this throws an error, the request ends. */
  readonly take?: (piece: Buffer, status: number) => void;
  readonly made?: (request: ClientRequest) => void;
}

/** A complete reply. The body is empty if the request processes chunks itself. */
export interface HttpReply {
  readonly status: number;
  readonly body: Buffer;
}

/** Rejects with the connection error, or with one of the request's messages. */
export function sendHttp(asked: HttpRequest): Promise<HttpReply> {
  const { url, options = {}, body, clock, waitMs, late, bytesMax, tooLong, take, made } = asked;
  const { request } = url.protocol === 'https:' ? builtins.https() : builtins.http();
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: false, ...options }, (response) => {
      const status = response.statusCode ?? 0;
      const pieces: Buffer[] = [];
      let size = 0;
      response.on('data', (piece: Buffer) => {
        size += piece.length;
        if (size > bytesMax) return void sent.destroy(new Error(tooLong));
        if (take === undefined) return void pieces.push(piece);
        try {
          take(piece, status);
        } catch (error) {
          sent.destroy(error as Error);
        }
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status, body: Buffer.concat(pieces) }));
    });
    const timer = clock.after(waitMs, () => sent.destroy(new Error(late)));
    sent.on('close', () => timer.cancel());
    sent.on('error', reject);
    made?.(sent);
    sent.end(body);
  });
}
