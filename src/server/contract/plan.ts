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
  /** Milliseconds. */
  readTimeoutMs: number;
  writeTimeoutMs: number;
  idleTimeoutMs: number;
  /** Queries per TCP connection; -1: no limit. */
  maxTcpQueries: number;
  /** Whether queries of classes other than IN pass (`chaos`, `forward`). */
  anyClass: boolean;
  /** Name of the block's view, or empty. */
  view: string;
  /** Panics are not caught, debug lines are logged. */
  debug: boolean;
  /** Panics are logged with their stack (`errors { stacktrace }`). */
  stacktrace: boolean;
}

export interface TlsPlan {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
  readonly clientAuth: 'nocert' | 'request' | 'require' | 'verify_if_given' | 'require_and_verify';
}

export function makePlan(zones: readonly string[]): BlockPlan {
  return {
    zones,
    binds: [],
    bindExcept: [],
    sockets: 0,
    root: '',
    tls: null,
    readTimeoutMs: 3000,
    writeTimeoutMs: 5000,
    idleTimeoutMs: 10_000,
    maxTcpQueries: -1,
    anyClass: false,
    view: '',
    debug: false,
    stacktrace: false,
  };
}
