/**
 * Replies that reach a query's socket but do not match because they have another ID, another question, or no QR flag.
 * The client ignores them and keeps waiting.
 */
import type { MessageHead } from './message-head.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import type { Misfit, SeenExchange } from './seen-exchange.ts';

/** The number of sockets with such replies. When it is reached, all are dropped. */
const SOCKETS_MAX = 5000;
const OF_SOCKET_MAX = 8;
/** In milliseconds. No client waits longer. */
const WAIT_MS = 15_000;

interface Reply {
  readonly timeMs: number;
  readonly id: number;
  readonly name: string;
  readonly type: number;
  readonly isReply: boolean;
}

/** Combines client socket and server in a string. */
export function textOfSocket(protocol: string, client: Peer, server: Peer): string {
  return `${protocol} ${client.address} ${client.port} ${server.address} ${server.port}`;
}

/** Remembers replies that have no query, and finds those that reached a lost query's socket. */
export class Misfits {
  readonly #sockets = new Map<string, Reply[]>();

  /** @param socket the protocol and both ends, without the ID */
  add(socket: string, { id, name, type }: MessageHead, isReply: boolean, timeMs: number): void {
    if (name === '') return;
    let replies = this.#sockets.get(socket);
    if (replies === undefined) {
      if (this.#sockets.size >= SOCKETS_MAX) this.#sockets.clear();
      this.#sockets.set(socket, (replies = []));
    }
    replies.push({ timeMs, id, name, type, isReply });
    if (replies.length > OF_SOCKET_MAX) replies.shift();
  }

  get isEmpty(): boolean {
    return this.#sockets.size === 0;
  }

  /** The reply that reached a lost query's socket instead of the right one, or null if there was none. */
  take(socket: string, { id, name, type, sentMs }: SeenExchange): Misfit | null {
    const replies = this.#sockets.get(socket);
    if (replies === undefined) return null;
    const at = replies.findIndex((reply) => {
      const isOf = reply.name === name && reply.type === type;
      const isInTime = reply.timeMs >= sentMs && reply.timeMs - sentMs < WAIT_MS;
      return isInTime && (reply.isReply ? isOf !== (reply.id === id) : isOf && reply.id === id);
    });
    if (at < 0) return null;
    const [reply] = replies.splice(at, 1) as [Reply];
    if (replies.length === 0) this.#sockets.delete(socket);
    if (!reply.isReply) return 'flag';
    return reply.id === id ? 'question' : 'id';
  }

  clear(): void {
    this.#sockets.clear();
  }
}
