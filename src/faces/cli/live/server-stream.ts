/**
 * Follows queries from an ndots server's `console` directive, or packets from `ndots watch serve`. Reconnects after
 * failures.
 */
import type { Clock, Timer } from '../../../server/base/clock.ts';
import { isLoopbackHost, parseAddress, printAddress } from '../../../server/base/ip.ts';
import type { ConfigurationFile } from '../../../server/wire/dnstap.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import type { RecordReader } from '../../../tools/capture/read/packets/frame.ts';
import { PcapngReader } from '../../../tools/capture/read/packets/pcapng.ts';
import { DnstapReader } from '../../../tools/capture/read/records/dnstap-messages.ts';
import type { LiveModel } from '../../../tools/watch/live-model.ts';
import type { LiveInput } from '../../../tools/watch/live-input.ts';
import type { StreamTurn } from './stream-turns.ts';

/** Delay before reconnecting, in milliseconds. It starts at `first` and doubles up to `most`. */
const AGAIN_MS = { first: 500, most: 30_000 } as const;
/**
 * A server sends a message every 5 s. After this many milliseconds without a complete one, it counts as unavailable,
 * even if single bytes arrive.
 */
export const SILENT_MS = 15_000;
/** Maximum size of a block in an agent's stream, in bytes. The largest packet is a quarter of that (MAXIMUM_SNAPLEN). */
const BLOCK_MAX = 1024 * 1024;

/** The first byte of a pcapng stream. Frame Streams start with zero instead. */
const PCAPNG_START = 0x0a;

export interface FollowedServer {
  readonly host: string;
  readonly port: number;
}

/** The server address to use for the queries in its stream, which does not contain it. */
export function peerOf({ host, port }: FollowedServer): Peer {
  const bytes = parseAddress(host);
  return {
    address: bytes === null ? host : printAddress(bytes),
    port: isLoopbackHost(host) ? port : 53,
  };
}

/** Events on a connection until it ends or is closed. */
export interface StreamEvents {
  /** @returns the milliseconds to wait before reading more, so that other streams get their turn */
  bytes(bytes: Uint8Array): number;
  /** @param why for people */
  ended(why: string): void;
}

/** @returns a function that closes the connection */
export type StreamOpener = (events: StreamEvents) => () => void;

export interface ServerStreamParts {
  /** The server address to use for its messages, which do not contain it. */
  readonly server: FollowedServer;
  readonly open: StreamOpener;
  readonly input: LiveInput;
  readonly clock: Clock;
  /** Receives the server's reports about its configuration. */
  readonly model: Pick<LiveModel, 'configured' | 'reloaded'>;
  readonly turn: StreamTurn;
}

/** The reason why a server is unavailable until its first message. It may be the wrong port. */
export const NO_MESSAGE = 'no message yet';

export class ServerStream {
  readonly #parts: ServerStreamParts;
  #close: (() => void) | null = null;
  /** The current connection's number, used to ignore events from earlier ones. */
  #connection = 0;
  #silence: Timer | null = null;
  #again: Timer | null = null;
  #waitMs: number = AGAIN_MS.first;
  /** Messages that the server dropped on closed connections. */
  #leftOutBefore = 0;
  #leftOut = 0;

  constructor(parts: ServerStreamParts) {
    this.#parts = parts;
    parts.input.away(NO_MESSAGE);
    this.#connect();
  }

  /** Messages lost because either this reader or the server was too slow. */
  dropped(): number {
    return this.#leftOutBefore + this.#leftOut;
  }

  stop(): void {
    this.#connection = -1;
    this.#silence?.cancel();
    this.#again?.cancel();
    this.#close?.();
  }

  #connect(): void {
    const { open, turn } = this.#parts;
    const own = ++this.#connection;
    let reader: RecordReader | null = null;
    this.#listen();
    this.#close = open({
      bytes: (bytes) => {
        if (this.#connection !== own || bytes.length === 0) return 0;
        reader ??= this.#readerOf(bytes);
        const { records } = reader;
        const restMs = turn.run(() => reader!.push(bytes));
        if (reader.broken) this.#lost('it sends neither dnstap nor packets');
        else if (reader.records > records) this.#back(restMs);
        return restMs;
      },
      ended: (why) => {
        if (this.#connection === own) this.#lost(why);
      },
    });
  }

  /** Servers send dnstap; agents send pcapng. */
  #readerOf(first: Uint8Array): RecordReader {
    const { server, input, model } = this.#parts;
    const { reading } = input;
    if (first[0] === PCAPNG_START) {
      const reader = new PcapngReader(
        ({ bytes, start, end, timeMs, port }) =>
          reading.takeNetwork(bytes, start, end, timeMs, port),
        reading.remarks,
        BLOCK_MAX,
      );
      reader.dropped = (packets) => (this.#leftOut = packets);
      return reader;
    }
    let loaded: readonly ConfigurationFile[] | null = null;
    let isFirst = true;
    return new DnstapReader(
      (message) => reading.takeMessage(message),
      reading.remarks,
      undefined,
      { address: parseAddress(server.host)!, port: server.port },
      {
        leftOut: (count) => (this.#leftOut = count),
        configuration: (files) => {
          loaded = files;
          if (isFirst) model.configured(input, files);
          isFirst = false;
        },
        reloaded: (fromMs, toMs) => model.reloaded(input, { fromMs, toMs }, loaded),
      },
    );
  }

  /** Called when a message is complete. Until then, other bytes may look like one. */
  #back(restMs: number): void {
    this.#listen(restMs);
    this.#waitMs = AGAIN_MS.first;
    this.#parts.input.back();
  }

  #listen(restMs = 0): void {
    this.#silence?.cancel();
    this.#silence = this.#parts.clock.after(SILENT_MS + restMs, () =>
      this.#lost('it sends no complete message'),
    );
  }

  #lost(why: string): void {
    this.#connection++;
    this.#silence?.cancel();
    this.#close?.();
    this.#leftOutBefore += this.#leftOut;
    this.#leftOut = 0;
    this.#parts.input.away(why);
    this.#again = this.#parts.clock.after(this.#waitMs, () => this.#connect());
    this.#waitMs = Math.min(AGAIN_MS.most, 2 * this.#waitMs);
  }
}
