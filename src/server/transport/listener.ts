import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Maybe } from '../base/maybe.ts';
import type { Query } from './query.ts';
import type { Reply } from '../wire/reply.ts';
import type { Scheme } from '../wire/transports.ts';
import type { ListenerLimits } from './limits/limits.ts';
import type { CountersOf } from './listener-counters.ts';
import type { ProxyPlan } from './proxy/proxy-policy.ts';

/** Answers a query; implemented by the server. It never throws, and its promises never reject. */
export type Serve = (query: Query) => Maybe<Reply>;

export interface ListenAddress {
  readonly scheme: Scheme;
  /** An IP address (with its `%zone` if it is IPv6 link-local), or a wildcard for all addresses of both families. */
  readonly address: string;
  /** 0 lets the system choose a port, which is then available as `Listener.port`. */
  readonly port: number;
}

/** The policy for client certificates: whether one is required, and whether it must be signed by the CA. */
export type ClientAuth =
  | 'nocert'
  | 'request'
  | 'require'
  | 'verify_if_given'
  | 'require_and_verify';

/** Certificate and key in PEM form, and what is required of clients. */
export interface ListenerTls {
  readonly certificate: string | Buffer;
  readonly key: string | Buffer;
  readonly authority: string | Buffer | null;
  readonly clientAuth: ClientAuth;
  /**
   * The secret from which session ticket keys are derived, shared by all listeners where a client may resume a session.
   * Null means that a session can only be resumed at the same listener.
   */
  readonly ticketSecret: Uint8Array | null;
  /** The file for connection secrets, or null. */
  readonly keyLog: string | null;
}

/** Settings that a reload may change while sockets and connections stay open. */
export interface ListenerTerms {
  readonly limits: ListenerLimits;
  readonly tls: ListenerTls | null;
  /** The proxies whose PROXY protocol headers are trusted, or null if no headers are expected. */
  readonly proxy: ProxyPlan | null;
}

export interface ListenerParts {
  readonly endpoint: ListenAddress;
  readonly terms: ListenerTerms;
  readonly serve: Serve;
  readonly clock: Clock;
  readonly log: Log;
  readonly counters: CountersOf;
  /**
   * Returns true while memory is so short that each new connection has to replace an idle one. Undefined means never.
   */
  readonly isShort?: () => boolean;
}

export interface Listener {
  readonly endpoint: ListenAddress;
  /** The actual port, once open. */
  readonly port: number;
  /**
   * @throws Problem (`address-in-use`, `permission-denied`, `address-not-available`,
   * `listen-failed`)
   */
  open(): Promise<void>;
  /**
   * Applies changed settings. New connections use all of them, while open connections keep what was negotiated in their
   * handshake.
   * @throws Problem (`tls-certificate`)
   */
  adopt(terms: ListenerTerms): void;
  /** Stops reading new queries, gives those in flight up to `graceMs` to finish, and then closes. */
  close(graceMs: number): Promise<void>;
}

export type MakeListener = (parts: ListenerParts) => Listener;
