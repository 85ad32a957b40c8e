/** What is planned for a server block before it is opened. */
import type { ListenerLimits } from '../../net/limits.ts';
import type { ClientAuth } from '../../net/listener.ts';
import type { ProxyPlan } from '../../net/proxy-policy.ts';
import type { Scheme } from '../../wire/transports.ts';

/** What configuring plugins (`bind`, `tls`, `timeouts`, `multisocket` …) say of their server block before it is opened. */
export interface BlockPlan {
  readonly zones: readonly string[];
  /** Addresses or interface names to listen on; empty: all. */
  readonly binds: string[];
  readonly bindExcept: string[];
  /** Sockets per address, which is workers here; 0: as many as the program thinks fit. */
  sockets: number;
  /** Base for relative file paths. */
  root: string;
  tls: TlsPlan | null;
  /** Whose headers of the PROXY protocol are believed; null: nobody's. */
  proxy: ProxyPlan | null;
  /** What is said about the limits of listeners; the rest is as usual. */
  readonly limits: PlannedLimits;
  /** Whether links of the chain tell `query.recorder` of their queries. */
  recorded: boolean;
  /** Whether queries of classes other than IN pass (`chaos`, `forward`). */
  anyClass: boolean;
  /** Name of the block's view, or empty. */
  view: string;
  /** Panics are not caught, debug lines are logged. */
  debug: boolean;
  /** Panics are logged with their stack (`errors { stacktrace }`). */
  stacktrace: boolean;
}

/** Limits that a block sets. */
export interface PlannedLimits extends Partial<Changeable<ListenerLimits>> {
  /** Limits of the listeners of one transport, before those of all. */
  readonly of: Partial<Record<Scheme, Partial<ListenerLimits>>>;
}

type Changeable<T> = { -readonly [K in keyof T]: T[K] };

/** The files of `tls`; relative paths are to the folder of the Corefile. Empty: there is none. */
export interface TlsPlan {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
  readonly clientAuth: ClientAuth;
  /** Where the secrets of connections are written to, for programs that read captures of them. */
  readonly keyLog: string;
}

/** The plan of a block that says nothing. */
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
