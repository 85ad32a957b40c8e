import type { IncomingMessage } from 'node:http';
import type { Agent } from 'node:https';

import { builtins } from '../../base/builtins.ts';
import { MEDIA_TYPE } from '../http2/dns-over-https.ts';
import { exchangeError } from '../upstream/exchange-failure.ts';
import type { UpstreamExchange } from '../upstream/upstream-exchange.ts';
import { GatheredMessage } from '../stream/gathered-message.ts';
import { LATE, type Http2Host } from '../http2/http2-link.ts';
import { matchReply } from '../upstream/match-reply.ts';
import { sizeUpstream, writeQuery } from '../upstream/write-query.ts';
import { ExchangeError } from '../upstream/upstream-exchange.ts';
import { tlsOptions } from '../upstream/upstream-connector.ts';

/**
 * Queries an upstream that supports only HTTP/1.1. A connection carries one request at a time, and other queries wait
 * in a queue.
 */
export class Http1Requests {
  /** Number of queries without a reply. */
  waiting = 0;
  readonly #host: Http2Host;
  readonly #agent: Agent;

  constructor(host: Http2Host) {
    const { expireMs, maxIdle, maxConnections } = host.parts;
    this.#host = host;
    this.#agent = new (builtins.https().Agent)({
      keepAlive: true,
      timeout: expireMs,
      maxSockets: maxConnections,
      maxFreeSockets: maxIdle > 0 ? maxIdle : 64,
    });
  }

  /** Sends the exchange's query. The caller has already set its deadline. */
  send(exchange: UpstreamExchange): void {
    const { parts, now, wheel, action, path } = this.#host;
    const { query } = exchange;
    const message = Buffer.allocUnsafe(sizeUpstream(query));
    writeQuery(query, 0, message, 0);
    const body = parts.httpMethod === 'POST' ? message : null;
    const target = body === null ? `${path}?dns=${message.toString('base64url')}` : path;
    const leave = (): void => {
      this.waiting--;
      exchange.carrier = null;
      wheel.cancel(exchange);
    };
    const fail = (error: ExchangeError): void => {
      if (exchange.carrier !== carrier) return;
      leave();
      asked.destroy();
      exchange.failed(error, now());
    };
    const broken = (cause: unknown): void => {
      const { failure, message: text } = exchangeError(cause, 'read', 'tcp');
      fail(new ExchangeError(failure, `${action}: ${text}`));
    };
    const asked = builtins.https().request(this.#options(target, body), (response) => {
      if (response.statusCode !== 200) {
        const status = response.statusCode ?? 'missing';
        return fail(new ExchangeError('http', `${action}: HTTP status ${status}`));
      }
      collect(response).then((bytes) => {
        if (exchange.carrier !== carrier) return;
        const id = bytes.length >= 2 ? bytes.readUInt16BE(0) : 0;
        if (matchReply(query, id, bytes, 0, bytes.length) !== 'reply')
          return fail(new ExchangeError('http', `${action}: the body is not a reply to the query`));
        leave();
        exchange.replied(bytes, 0, bytes.length, false, asked.reusedSocket, now());
      }, broken);
    });
    const carrier = {
      timeOut: (): void => {
        parts.counters.timeouts.add(1);
        fail(new ExchangeError('timeout', `${action}: ${LATE}`));
      },
    };
    this.waiting++;
    exchange.carrier = carrier;
    asked.on('error', broken);
    asked.end(body ?? undefined);
  }

  close(): void {
    this.#agent.destroy();
  }

  #options(path: string, body: Buffer | null) {
    const { parts, authority } = this.#host;
    const { address, source } = parts;
    return {
      agent: this.#agent,
      host: address.host,
      port: address.port,
      path,
      method: body === null ? 'GET' : 'POST',
      ...tlsOptions(parts),
      ...(source !== '' && { localAddress: source }),
      headers: {
        host: authority,
        accept: MEDIA_TYPE,
        ...(body !== null && { 'content-type': MEDIA_TYPE, 'content-length': body.length }),
      },
    };
  }
}

/** Collects the whole body, and fails if it is larger than a DNS message can be. */
async function collect(body: IncomingMessage): Promise<Buffer> {
  const message = new GatheredMessage();
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (!message.add(chunk, 0, chunk.length)) throw new Error('the body is too long');
  }
  return message.bytes;
}
