/** Assigns numbers to the sources of cached replies. */
import { printHostPort } from '../../base/ip.ts';
import type { ExchangeTap } from '../../engine/contract/ports.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';

/** Highest number that fits into a byte. There are few upstreams, and any beyond this are unnamed in listings. */
const SOURCES_MAX = 255;

/**
 * Assigns numbers to reply sources: the plugin and, if there was one, the upstream. Forwarding plugins report each
 * finished exchange (`tap`) just before its reply passes through the cache.
 */
export class Sources {
  readonly #texts: string[] = [''];
  readonly #numbers = new Map<string, number>();
  #query: Query | null = null;
  #host = '';
  #port = 0;
  /** The most recent number, because the next reply usually has the same source. */
  #last = { plugin: '', host: '', port: 0, number: 0 };

  readonly tap: ExchangeTap = {
    exchanged: ({ query, host, port, reply }) => {
      if (reply === null) return;
      this.#query = query;
      this.#host = host;
      this.#port = port;
    },
  };

  of(query: Query, { plugin }: Reply): number {
    const asked = this.#query === query;
    const host = asked ? this.#host : '';
    const port = asked ? this.#port : 0;
    this.#query = null;
    const last = this.#last;
    if (last.plugin === plugin && last.host === host && last.port === port) return last.number;
    const text = host === '' ? plugin : `${plugin} ${printHostPort(host, port)}`;
    const number = this.#numberOf(text);
    this.#last = { plugin, host, port, number };
    return number;
  }

  /** Returns `forward 10.0.0.53:53` or `template`, or an empty string if unknown. */
  text(number: number): string {
    return this.#texts[number] ?? '';
  }

  #numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    if (this.#texts.length > SOURCES_MAX) return 0;
    const number = this.#texts.push(text) - 1;
    this.#numbers.set(text, number);
    return number;
  }
}
