/**
 * Sends one HTTP/1.1 request with Node's client. The API server's lists have their own reader:
 * docs/decisions/kube-client.md.
 */
import type { ClientRequest, RequestOptions } from 'node:http';
import { builtins } from './builtins.ts';
import type { Clock } from './clock.ts';

/** A request and its bounds. Each request has a separate connection. */
export interface HttpRequest {
  readonly url: URL;
  /** Method (default: GET), headers, another address, TLS material. */
  readonly options?: RequestOptions & { readonly ca?: string; readonly cert?: string };
  readonly body?: string | Buffer;
  readonly clock: Clock;
  /** Milliseconds for the whole request. */
  readonly waitMs: number;
  /** The message of the error after `waitMs`. */
  readonly late: string;
  /** The most bytes of a reply's body. */
  readonly bytesMax: number;
  /** The message of the error for a longer body. */
  readonly tooLong: string;
  /** Called with each piece of the body instead of gathering it. Its errors end the request. */
  readonly take?: (piece: Buffer, status: number) => void;
  /** Called when the request is made. */
  readonly made?: (request: ClientRequest) => void;
}

/** A whole reply; the body is empty if the request takes its pieces. */
export interface HttpReply {
  readonly status: number;
  readonly body: Buffer;
}

/** Rejects with the error of the connection, or with the messages of the request. */
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
