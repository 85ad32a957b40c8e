/** The control plane as seen by plugins. */
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
  /**
   * Sends a message to every worker, as a structured clone.
   * @returns the number of workers
   */
  publish(message: unknown, transfer?: readonly ArrayBuffer[]): number;
  /** Sets the current state, which each worker receives first when it joins, before anything published later. */
  onJoin(state: () => Iterable<unknown>): void;
  /** Receives the messages that workers send over this channel. */
  onMessage(handler: (message: unknown, worker: number) => void): void;
  /** Returns the number of workers that have joined this channel. */
  readonly workers: () => number;
}

/** The context for a plugin's control part: its position on the main thread, and its instance's channel. */
export interface ControlContext extends ControlChannel, NamedFiles {
  readonly zones: readonly string[];
  readonly servers: readonly string[];
  readonly view: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns true if the block has this plugin. */
  has(plugin: string): boolean;
  /**
   * The block's plugins that answer queries, in chain order. Plugins that only configure or operate the server are
   * omitted.
   */
  readonly links: readonly string[];

  /**
   * Registers a function that runs before queries are served. The server waits for all such functions. A rejection with
   * a Problem stops startup.
   */
  onStart(run: () => Maybe<void>): void;
  /**
   * Registers a function that runs once the configuration is being served, and never if it could not be served.
   * @param run receives the time in which the workers switched to it
   */
  onServing(run: (switched: SwitchTime) => void): void;
  /** Registers a function that runs when the configuration has been replaced or the server has stopped answering. */
  onStop(run: () => Maybe<void>): void;
  /**
   * Registers a function that runs only at the final shutdown, while DNS is still served (lameduck). The functions run
   * one after another, in chain order.
   * @param lastsMs expected duration (default 0); a function that takes much longer is abandoned
   */
  onShutdown(run: () => Maybe<void>, lastsMs?: number): void;

  /**
   * Returns an object that survives reloads. This is the previous configuration's object with this key, or a new one
   * from `make`. It is closed once a configuration no longer requests it.
   */
  keep<T extends KeptAcrossReloads>(key: string, make: () => T): T;
  /**
   * Does the same for the owner of a data set that is copied to every worker (`WorkerContext.replica` with the same
   * key). `make` opens the set, and is called only once. The key begins with the plugin's name and a slash.
   */
  replicated<T extends KeptAcrossReloads>(key: string, make: (open: OpenDataSet) => T): T;

  /**
   * Serves a path on the HTTP server at `address` (`:8080`, `localhost:9153`), which plugins share.
   * @param tls makes the server use HTTPS; all plugins that share an address must pass the same value
   */
  http(address: string, path: string, handler: HttpHandler, tls?: HttpTls): void;
  /** Contributes to readiness under the plugin's name, if a plugin observes it. */
  readiness(ready: () => boolean): void;
  /**
   * Observes whether this block's plugins are ready.
   * @returns a function that returns the current readiness by plugin name, for all observed blocks; a plugin is ready
   * if all its instances are
   */
  observeReadiness(): () => ReadonlyMap<string, boolean>;
  /** Offers a command to administrators under a name such as `cache/explain`. */
  offerCommand(name: string, run: AdminCommand): void;
  /** Returns the commands that plugins in all blocks offer under this name, in Corefile order. */
  commands(name: string): readonly AdminCommand[];
  /**
   * Answers with all metrics from all threads, in the scraper's preferred format. Each format is rendered at most once
   * a second, for all addresses together.
   */
  readonly sendMetrics: HttpHandler;
  /** The running configuration, for `reload`. */
  readonly configuration: RunningConfiguration;
  /**
   * Returns true if at least one worker answers. Returns false if every worker hangs, or has died and has not been
   * replaced.
   */
  readonly answering: () => boolean;
  /** Ends the process with a message, for `loop`. */
  fatal(text: string): void;
}

/**
 * A command for administrators. Its arguments are strings by name, and its result is sent as JSON. A `Problem` is a
 * user error.
 */
export type AdminCommand = (words: ReadonlyMap<string, string>) => Promise<object>;

/**
 * The time between the moment when a worker may first have served a new configuration and the moment when all of them
 * do.
 */
export interface SwitchTime {
  /** Milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** An object that may outlive a configuration. */
export interface KeptAcrossReloads {
  close(): Maybe<void>;
}

/** TLS settings for an HTTP server. */
export interface HttpTls {
  /** Equal keys mean equal settings. */
  readonly key: string;
  /**
   * Loads the certificate and key again for each connection, so that a renewed certificate does not require a reload.
   * May throw.
   */
  load(): SecureContextOptions;
  /** True if clients must present a certificate, and true if those without a valid one are rejected. */
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
  /** Returns true if a client is accepted after its handshake. */
  welcome(socket: TLSSocket): boolean;
}

/** Answers one HTTP request. Any errors are logged and answered with status 500. */
export interface HttpHandler {
  (request: IncomingMessage, response: ServerResponse): void;
  /**
   * True for probes (liveness and readiness). They are answered before other requests, and are never refused because of
   * load. A handler for them must be cheap.
   */
  readonly probe?: boolean;
}

/** The configuration being served, and the means to load another. */
export interface RunningConfiguration {
  /** SHA-512 of the tokens in the Corefile and all its imports. */
  readonly fingerprint: string;
  /**
   * The texts of the Corefile and its imports as they were read, by file name. Environment variables in them are not
   * replaced.
   */
  readonly texts: ReadonlyMap<string, string>;
  /**
   * Reads the Corefile again.
   * @returns its fingerprint, or the reason why it cannot be read
   */
  reread(): { readonly fingerprint: string } | { readonly problem: Error };
  /** Loads the configuration again. Resolves to false if it was rejected. */
  reload(): Promise<boolean>;
}
