/** Connects directly to a server's `console` directive or to `ndots watch serve`. */
import { request, type IncomingMessage } from 'node:http';
import { createGunzip, type Gunzip } from 'node:zlib';
import type { Clock } from '../../../server/base/clock.ts';
import { isLoopbackHost } from '../../../server/base/ip.ts';
import { oneLine } from '../../../server/base/visible.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { TAP_PATH, TAP_STREAM } from '../../../server/wire/dnstap.ts';
import type { FollowedServer, StreamOpener } from './server-stream.ts';

const WHY_MAX = 200;

/** Limit on interim responses (RFC 9110, section 15.2). No server of ndots sends any, and a proxy sends a few. */
const INTERIM_MAX = 16;

/** @param token read again for each connection, because tokens from the API server expire */
export function directStream(
  { host, port }: FollowedServer,
  token: () => string,
  clock: Clock,
): StreamOpener {
  return ({ bytes, ended }) => {
    const asked = request({
      ...{ host, port, path: TAP_PATH, agent: false },
      headers: {
        authorization: `Bearer ${token()}`,
        ...(!isLoopbackHost(host) && { 'accept-encoding': 'gzip' }),
      },
    });
    const failed = (error: Error): void => ended(whyFailed(error));
    let gunzip: Gunzip | null = null;
    asked.on('error', failed);
    let interim = 0;
    asked.on('information', () => {
      if (++interim === INTERIM_MAX) ended('it sends interim responses, but no reply');
    });
    asked.on('response', (response) => {
      const refused = refusalOf(response);
      if (refused !== null)
        return takeReason(response, (why) => ended(why === '' ? refused : `${refused} (${why})`));
      if (response.headers['content-encoding'] === 'gzip') gunzip = createGunzip();
      const stream = gunzip === null ? response : response.pipe(gunzip);
      response.on('error', failed);
      stream.on('error', failed);
      stream.on('data', (piece: Uint8Array) => {
        const restMs = bytes(piece);
        if (restMs === 0) return;
        stream.pause();
        clock.after(restMs, () => stream.resume());
      });
      stream.on('end', () => ended('the server ended the stream'));
      response.on('close', () => ended('the connection was closed'));
    });
    asked.end();
    return () => {
      asked.destroy();
      // It may still hold bytes that decompress to a thousand times their size.
      gunzip?.destroy();
    };
  };
}

/** Why the reply is not a stream, as a message, or null if it is one. */
function refusalOf({ statusCode = 0, headers }: IncomingMessage): string | null {
  const stream = headers['ndots-stream'];
  if (stream === undefined)
    return `it answers with HTTP ${statusCode}, but is neither the console directive nor ndots watch serve`;
  if (stream !== TAP_STREAM)
    return `it is another version of ndots (stream ${oneLine(String(stream).slice(0, WHY_MAX))}, expected ${TAP_STREAM}); use the same version on both sides`;
  return statusCode === 200 ? null : (refusals[statusCode] ?? `it answers with HTTP ${statusCode}`);
}

/** Messages that explain why readers are refused, by HTTP status. */
export const refusals: Readonly<Record<number, string>> = {
  401: 'the token is wrong or missing: --server-token FILE contains the token from its token file or its log, or one from kubectl create token',
  403: 'the token has no permission: kubectl auth can-i get /v1/exchanges --as USER',
  503: 'it has the maximum number of readers, or cannot check the token at the moment',
};

/** Passes on the beginning of an error message, which may contain anything. */
function takeReason(response: IncomingMessage, take: (why: string) => void): void {
  let body = '';
  const done = (): void => {
    response.off('data', collect).off('end', done).off('error', done);
    take(oneLine(body.trim().slice(0, WHY_MAX)));
  };
  const collect = (piece: Buffer): void => {
    body += piece.toString('latin1');
    if (body.length >= WHY_MAX) done();
  };
  response.on('data', collect).on('end', done).on('error', done);
}
