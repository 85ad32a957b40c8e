/** The control plane, as plugins see it. */
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
  /** Sends a message (by structured clone) to every worker. @returns how many workers there are */
  publish(message: unknown, transfer?: readonly ArrayBuffer[]): number;
  /**
   * Sets what each worker is sent first when it joins, before anything that is published later: the
   * current state.
   */
  onJoin(state: () => Iterable<unknown>): void;
  /** Receives the messages that workers send over this channel. */
  onMessage(handler: (message: unknown, worker: number) => void): void;
  /** The number of workers that have joined this channel. */
  readonly workers: () => number;
}

/**
 * The context of a plugin's control part: its place on the main thread, and the channel of its
 * instance.
 */
export interface ControlContext extends ControlChannel, NamedFiles {
  readonly zones: readonly string[];
  readonly servers: readonly string[];
  readonly view: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if the block has this plugin. */
  has(plugin: string): boolean;
  /**
   * The block's plugins that answer queries, in chain order, without those that only configure or
   * operate the server.
   */
  readonly links: readonly string[];

  /**
   * Runs before queries are served; the server waits for all of them. A rejection with a Problem
   * stops the start.
   */
  onStart(run: () => Maybe<void>): void;
  /** Runs once the configuration serves; never for one that could not. */
  onServing(run: () => void): void;
  /** Runs when the configuration has been replaced, or when the server has stopped answering. */
  onStop(run: () => Maybe<void>): void;
  /**
   * Runs only at the final shutdown, while DNS is still served (lameduck), one after the other in
   * chain order. @param lastsMs its expected duration (default 0); one that takes much longer is
   * abandoned
   */
  onShutdown(run: () => Maybe<void>, lastsMs?: number): void;

  /**
   * Returns an object that survives reloads: that of the previous configuration under this key, or
   * a new one from `make`. It is closed when a configuration no longer requests it.
   */
  keep<T extends KeptAcrossReloads>(key: string, make: () => T): T;
  /**
   * The same for the owner of a data set of which every worker keeps a copy
   * (`WorkerContext.replica` with the same key). `make` opens the set, once. The key begins with
   * the plugin's name and a slash.
   */
  replicated<T extends KeptAcrossReloads>(key: string, make: (open: OpenDataSet) => T): T;

  /**
   * Serves a path on the HTTP server at `address` (`:8080`, `localhost:9153`), which plugins share.
   * @param tls the server speaks HTTPS; all plugins that share an address must give the same
   */
  http(address: string, path: string, handler: HttpHandler, tls?: HttpTls): void;
  /** Contributes to readiness under the plugin's name, if a plugin observes it. */
  readiness(ready: () => boolean): void;
  /**
   * Observes the readiness of this block's plugins.
   * @returns a function that gives the current readiness by plugin name, for all observed blocks; a
   * plugin is ready if
   *   all its instances are
   */
  observeReadiness(): () => ReadonlyMap<string, boolean>;
  /** Offers a command to administrators, under a name such as `cache/explain`. */
  offerCommand(name: string, run: AdminCommand): void;
  /**
   * The commands that plugins of all blocks offer under this name, in the order of the Corefile.
   */
  commands(name: string): readonly AdminCommand[];
  /**
   * Answers with all metrics of all threads, in the format that the scraper prefers. Each format is
   * rendered at most once a second, for all addresses together.
   */
  readonly sendMetrics: HttpHandler;
  /** The running configuration, for `reload`. */
  readonly configuration: RunningConfiguration;
  /**
   * True if any worker answers: false while all of them hang or have died and have not been
   * replaced.
   */
  readonly answering: () => boolean;
  /** Ends the process with a message, as `loop` does. */
  fatal(text: string): void;
}

/**
 * A command for administrators. Its arguments are texts by name; its result is sent as JSON. A
 * `Problem` is the person's mistake.
 */
export type AdminCommand = (words: ReadonlyMap<string, string>) => Promise<object>;

/** An object that may outlive a configuration. */
export interface KeptAcrossReloads {
  close(): Maybe<void>;
}

/** TLS settings of an HTTP server. */
export interface HttpTls {
  /** Equal keys mean equal settings. */
  readonly key: string;
  /**
   * Loads certificate and key, for each connection again, so that a renewed certificate needs no
   * reload. May throw.
   */
  load(): SecureContextOptions;
  /** True if clients must present a certificate, and whether those without a valid one are rejected. */
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
  /** True if a client is accepted after its handshake. */
  welcome(socket: TLSSocket): boolean;
}

/** Answers one HTTP request. Its errors are logged, and answered with status 500. */
export interface HttpHandler {
  (request: IncomingMessage, response: ServerResponse): void;
  /**
   * True for probes (liveness, readiness): they are answered before other requests and are never
   * refused for the load. Such a handler must be cheap.
   */
  readonly probe?: boolean;
}

/** The configuration being served, and the means to load another. */
export interface RunningConfiguration {
  /** SHA-512 over the tokens of the Corefile and everything it imports. */
  readonly fingerprint: string;
  /** Reads the Corefile again. @returns its fingerprint, or why it cannot be read */
  reread(): { readonly fingerprint: string } | { readonly problem: Error };
  /** Loads the configuration again; resolves to false if it was rejected. */
  reload(): Promise<boolean>;
}
