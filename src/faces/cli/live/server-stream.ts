/** Follows the queries of an ndots server with the directive `console`, and connects again when it is away. */
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import type { Clock, Timer } from '../../../server/base/clock.ts';
import { isLoopbackHost, parseAddress, printHostPort } from '../../../server/base/ip.ts';
import { oneLine } from '../../../server/base/visible.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { TAP_PATH, TAP_STREAM } from '../../../server/wire/dnstap.ts';
import { DnstapReader } from '../../../tools/capture/read/records/dnstap-messages.ts';
import type { LiveInput } from '../../../tools/watch/live-input.ts';

/** The first wait before a new connection and the longest, milliseconds; each is twice the one before. */
const AGAIN_MS = { first: 500, most: 30_000 } as const;
/** A server sends something every 5 s; one that is silent for longer is away, milliseconds. */
const SILENT_MS = 15_000;
/** Bytes of a refusal that are shown. */
const WHY_MAX = 200;

/** A server that is followed. */
export interface FollowedServer {
  readonly host: string;
  readonly port: number;
}

/** One server. Its input says when it is away, and why. */
export class ServerStream {
  readonly name: string;
  readonly #server: FollowedServer;
  readonly #token: string;
  readonly #clock: Clock;
  readonly #input: LiveInput;
  #asked: ClientRequest | null = null;
  #silence: Timer | null = null;
  #again: Timer | null = null;
  #waitMs: number = AGAIN_MS.first;
  #isStopped = false;
  /** The number of messages that the server dropped on connections that are closed. */
  #leftOutBefore = 0;
  #leftOut = 0;

  constructor(server: FollowedServer, token: string, input: LiveInput, clock: Clock) {
    this.name = printHostPort(server.host, server.port);
    this.#server = server;
    this.#token = token;
    this.#input = input;
    this.#clock = clock;
    this.#connect();
  }

  /** Messages that this reader or the server was too slow for. */
  dropped(): number {
    return this.#leftOutBefore + this.#leftOut;
  }

  stop(): void {
    this.#isStopped = true;
    this.#silence?.cancel();
    this.#again?.cancel();
    this.#asked?.destroy();
  }

  #connect(): void {
    const { host, port } = this.#server;
    const asked = request({
      ...{ host, port, path: TAP_PATH, agent: false },
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(!isLoopbackHost(host) && { 'accept-encoding': 'gzip' }),
      },
    });
    this.#asked = asked;
    this.#listen();
    asked.on('error', (error) => this.#lost(asked, whyFailed(error)));
    asked.on('response', (response) => {
      const refused = refusalOf(response);
      if (refused === null) this.#read(asked, response);
      else {
        response.resume();
        this.#lost(asked, refused);
      }
    });
    asked.end();
  }

  #read(asked: ClientRequest, response: IncomingMessage): void {
    const { reading } = this.#input;
    const reader = new DnstapReader(
      (message) => reading.takeMessage(message),
      reading.remarks,
      undefined,
      { address: parseAddress(this.#server.host)!, port: this.#server.port },
      (count) => (this.#leftOut = count),
    );
    const isPacked = response.headers['content-encoding'] === 'gzip';
    const stream = isPacked ? response.pipe(createGunzip()) : response;
    const end = (why: string): void => {
      this.#lost(asked, why);
    };
    response.on('error', (error) => end(whyFailed(error)));
    stream.on('error', (error) => end(whyFailed(error)));
    stream.on('data', (bytes: Buffer) => {
      if (this.#asked !== asked) return;
      this.#listen();
      this.#waitMs = AGAIN_MS.first;
      this.#input.back();
      reader.push(bytes);
      if (reader.broken) end('it does not send a dnstap stream');
    });
    stream.on('end', () => end('the server has ended the stream'));
    response.on('close', () => end('the connection was closed'));
  }

  /** Waits for the next bytes. */
  #listen(): void {
    this.#silence?.cancel();
    this.#silence = this.#clock.after(SILENT_MS, () => {
      if (this.#asked !== null) this.#lost(this.#asked, 'it sends nothing');
    });
  }

  #lost(asked: ClientRequest, why: string): void {
    if (this.#asked !== asked || this.#isStopped) return;
    this.#asked = null;
    this.#silence?.cancel();
    asked.destroy();
    this.#leftOutBefore += this.#leftOut;
    this.#leftOut = 0;
    this.#input.away(why);
    this.#again = this.#clock.after(this.#waitMs, () => this.#connect());
    this.#waitMs = Math.min(AGAIN_MS.most, 2 * this.#waitMs);
  }
}

/** Why this is not the stream, for people; null: it is. */
function refusalOf({ statusCode = 0, headers }: IncomingMessage): string | null {
  const stream = headers['ndots-stream'];
  if (stream === undefined)
    return `it answers HTTP ${statusCode}, but it is not the directive console`;
  if (stream !== TAP_STREAM)
    return `it is another version of ndots (stream ${oneLine(String(stream).slice(0, WHY_MAX))}, expected ${TAP_STREAM}): use the same version on both sides`;
  if (statusCode === 401)
    return 'the token is wrong or missing: --server-token FILE has the token of its token_file, or of its log';
  if (statusCode === 503) return 'it has the maximum number of readers, or cannot read its token';
  return statusCode === 200 ? null : `it answers HTTP ${statusCode}`;
}
