/** The server block settings that are needed before the block is opened. */
import type { ListenerLimits } from '../../transport/limits/limits.ts';
import type { ClientAuth } from '../../transport/listener.ts';
import type { ProxyPlan } from '../../transport/proxy/proxy-policy.ts';
import type { Scheme } from '../../wire/transports.ts';

/**
 * Settings that configuring plugins (`bind`, `tls`, `timeouts`, `multisocket` …) make for their server block before it
 * is opened.
 */
export interface BlockPlan {
  readonly zones: readonly string[];
  /** Addresses or interface names to listen on. If empty, the block listens on all addresses. */
  readonly binds: string[];
  readonly bindExcept: string[];
  /** Sockets per address, which here means workers. 0 means the default. */
  sockets: number;
  /** Base directory for relative file paths. */
  root: string;
  tls: TlsPlan | null;
  /** The proxies whose PROXY protocol headers are trusted, or null if there are none. */
  proxy: ProxyPlan | null;
  /** The limits set by the block. All others keep their defaults. */
  readonly limits: PlannedLimits;
  /** True if the chain's links report to `query.recorder`. */
  recorded: boolean;
  /** True if queries for classes other than IN are served (`chaos`, `forward`). */
  anyClass: boolean;
  view: string;
  /** True if panics are not caught and debug lines are logged. */
  debug: boolean;
  /** True if panics are logged with their stack (`errors { stacktrace }`). */
  stacktrace: boolean;
}

export interface PlannedLimits extends Partial<Changeable<ListenerLimits>> {
  /** Limits for one transport's listeners, which take precedence over the limits for all. */
  readonly of: Partial<Record<Scheme, Partial<ListenerLimits>>>;
}

type Changeable<T> = { -readonly [K in keyof T]: T[K] };

/** The `tls` files. Paths may be relative to the Corefile's directory, and are empty if not set. */
export interface TlsPlan {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
  readonly clientAuth: ClientAuth;
  /** The file for TLS secrets, which are used to decrypt captures. */
  readonly keyLog: string;
}

/** Creates the plan for a block without settings. */
export function makePlan(zones: readonly string[]): BlockPlan {
  return {
    zones,
    binds: [],
    bindExcept: [],
    sockets: 0,
    root: '',
    tls: null,
    proxy: null,
    limits: { of: {} },
    recorded: false,
    anyClass: false,
    view: '',
    debug: false,
    stacktrace: false,
  };
}
