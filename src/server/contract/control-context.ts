/** What a plugin sees of the control plane. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Maybe } from '../../base/maybe.ts';
import type { Random } from '../../base/random.ts';
import type { Registry } from '../../metrics/registry.ts';
import type { OpenDataSet } from './data-set.ts';
import type { NamedFiles } from './named-files.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SecureContextOptions, TLSSocket } from 'node:tls';

/** The control thread's end of a channel to the same plugin in every worker. */
export interface ControlChannel {
  /** Sends a message (structured clone) to this channel's end in every worker. @returns how many there are */
  publish(message: unknown, transfer?: readonly ArrayBuffer[]): number;
  /** What a worker is sent first, before anything published later: the present state. Asked whenever a worker joins. */
  onJoin(state: () => Iterable<unknown>): void;
  /** Messages from this channel's ends in workers. */
  onMessage(handler: (message: unknown, worker: number) => void): void;
  /** How many workers have this channel's end at present. */
  readonly workers: () => number;
}

/** What a plugin's control plane part gets: its place on the main thread, and the channel of its instance. */
export interface ControlContext extends ControlChannel, NamedFiles {
  readonly zones: readonly string[];
  readonly servers: readonly string[];
  readonly view: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether a plugin stands in this block. */
  has(plugin: string): boolean;
  /** The block's plugins that have a part in answers, in chain order; what only configures or looks after the server is none. */
  readonly links: readonly string[];

  /** Starts before queries are served; the server waits for all of them. A rejection with a Problem stops the start. */
  onStart(run: () => Maybe<void>): void;
  /** Runs when the configuration has been replaced or the server has stopped answering. */
  onStop(run: () => Maybe<void>): void;
  /**
   * Runs at the final shutdown only, while DNS is still served (lameduck), one after the other in chain order.
   * @param lastsMs how long it takes by its nature (default 0): one that takes much longer is not waited for
   */
  onShutdown(run: () => Maybe<void>, lastsMs?: number): void;

  /**
   * A thing that outlives reloads: made by `make` unless the configuration before had one of the same key. It is closed
   * when a configuration no longer asks for it.
   */
  keep<T extends KeptAcrossReloads>(key: string, make: () => T): T;
  /**
   * The same for the owner of a data set that every worker holds a copy of: what workers get from `WorkerContext.replica` under
   * the same key. `make` opens the set, once. The key begins with the plugin's name and a slash.
   */
  replicated<T extends KeptAcrossReloads>(key: string, make: (open: OpenDataSet) => T): T;

  /**
   * Adds a path to the HTTP server at `address` (`:8080`, `localhost:9153`); plugins of one address share it.
   * @param tls the server speaks HTTPS; all that share an address say the same
   */
  http(address: string, path: string, handler: HttpHandler, tls?: HttpTls): void;
  /** Takes part in readiness under the plugin's name, where somebody observes it. */
  readiness(ready: () => boolean): void;
  /**
   * Observes the readiness of this block's plugins.
   * @returns the present readiness of those of all blocks that are observed, by name: all instances of a plugin together
   */
  observeReadiness(): () => ReadonlyMap<string, boolean>;
  /** Offers to do something for whoever administers the server, under a name such as `cache/explain`. */
  offerCommand(name: string, run: AdminCommand): void;
  /** What plugins of all blocks offer under this name, in the order of the Corefile. */
  commands(name: string): readonly AdminCommand[];
  /** All metrics of all threads, in the form that the scraper likes best. */
  readonly scrape: (accept: string | undefined) => {
    readonly type: string;
    readonly body: string | Buffer;
  };
  /** The configuration as it runs: for `reload`. */
  readonly configuration: RunningConfiguration;
  /** Whether a worker answers: false while all of them hang or have died and none has taken their place yet. */
  readonly answering: () => boolean;
  /** Ends the process with a message, as `loop` does. */
  fatal(text: string): void;
}

/**
 * Does something for whoever administers the server. What it is given are texts, by name; what it gives goes out as JSON. A `Problem` is
 * the person's mistake.
 */
export type AdminCommand = (words: ReadonlyMap<string, string>) => Promise<object>;

/** A thing that may outlive a configuration. */
export interface KeptAcrossReloads {
  close(): Maybe<void>;
}

/** How an HTTP server speaks TLS. */
export interface HttpTls {
  /** Equal for equal settings. */
  readonly key: string;
  /** What a handshake needs, read anew for each connection: a certificate that is renewed needs no reload. May throw. */
  load(): SecureContextOptions;
  /** Whether clients are asked for a certificate, and whether one that nobody known has signed, or none, is turned away. */
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
  /** Whether a client that has shaken hands is welcome. */
  welcome(socket: TLSSocket): boolean;
}

/** Answers one HTTP request. It may throw: that is logged, and answered 500. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** The configuration that is served, and the way to another one. */
export interface RunningConfiguration {
  /** SHA-512 over the tokens of the Corefile and all it imports. */
  readonly fingerprint: string;
  /** Reads the Corefile again: its fingerprint, or the problem that keeps it from being read. */
  reread(): { readonly fingerprint: string } | { readonly problem: Error };
  /** Loads the configuration anew; resolves to false if the new one was not taken. */
  reload(): Promise<boolean>;
}
