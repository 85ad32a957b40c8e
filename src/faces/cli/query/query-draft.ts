/** Settings for one `ndots query` query, both while parsing and when complete. */
import type { ColourOptions } from '../colour-options.ts';
import type { RemoteServer } from '../../../server/transport/one-exchange.ts';
import type { TsigSigningKey } from '../../../server/transport/tsig-keys.ts';
import type { EdnsOption } from '../../../server/wire/edns.ts';
import type { Protocol } from '../../../server/wire/transports.ts';
import { flag, type Option } from '../option.ts';

/** Transports that the command supports. */
export type QueryProtocol = Exclude<Protocol, 'grpc'>;

export interface QueryOptions extends ColourOptions {
  readonly name: string;
  readonly type: number;
  /** The type as given on the command line, or null if there was none. */
  readonly typeWord: string | null;
  /** A type that was given earlier and replaced by a later one. */
  readonly overridden: string | null;
  readonly class: number;
  readonly transport: QueryProtocol;
  /** Host name or address. If null, uses the first server in /etc/resolv.conf. */
  readonly server: string | null;
  readonly port: number;
  /** URL path on a DoH server. */
  readonly path: string;
  readonly recursion: boolean;
  readonly dnssec: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  /** EDNS buffer size in bytes, or null if there is no OPT record. */
  readonly bufferSize: number | null;
  readonly timeoutMs: number;
  readonly tries: number;
  /** A transfer is aborted after this many records. */
  readonly maxRecords: number;
  /** Accepts a truncated reply rather than retrying over TCP. */
  readonly ignoreTruncation: boolean;
  readonly output: 'dig' | 'short' | 'json';
  /** Address family for a server that is given by name, or null to use the system's preference. */
  readonly family: 4 | 6 | null;
  readonly opcode: number;
  readonly ednsVersion: number;
  readonly ednsOptions: readonly EdnsOption[];
  /** The serial from which an IXFR starts. */
  readonly serial: number | null;
  readonly showQuery: boolean;
  readonly show: PrintedParts;
  /** Sends non-ASCII names in their xn-- form. */
  readonly idn: boolean;
  /** Uses the search list in resolv.conf. */
  readonly search: boolean;
  /** Also prints replies to earlier names from the search list. */
  readonly showSearch: boolean;
  /** Overrides the value in the file. Null to use that one. */
  readonly ndots: number | null;
  /** The only domain to search, or null for those in the file. */
  readonly domain: string | null;
  /** The file that contains the servers, search list and ndots. */
  readonly resolvConf: string;
  /** Follows delegations from the root. */
  readonly trace: boolean;
  /** TSIG key for the query and its reply, or null to leave them unsigned. */
  readonly key: TsigSigningKey | null;
  /** Source address, where port 0 means any. If null, the system chooses one. */
  readonly source: RemoteServer | null;
}

export interface PrintedParts {
  readonly question: boolean;
  readonly answer: boolean;
  readonly authority: boolean;
  readonly additional: boolean;
  /** Header, OPT record and section titles. */
  readonly comments: boolean;
  /** Query time, server, size. */
  readonly stats: boolean;
  /** TTL and class of each record. */
  readonly ttl: boolean;
  readonly class: boolean;
}

export type Draft = {
  -readonly [K in keyof QueryOptions]: K extends 'name' | 'type' | 'transport' | 'port'
    ? QueryOptions[K] | null
    : QueryOptions[K];
};

const everything: PrintedParts = {
  question: true,
  answer: true,
  authority: true,
  additional: true,
  comments: true,
  stats: true,
  ttl: true,
  class: true,
};

/** High enough for any zone, but stops an endless transfer after a few minutes. */
const RECORDS_MAX = 100_000_000;

/** The default settings, before any word is parsed. */
export const fresh: Draft = {
  name: null,
  type: null,
  typeWord: null,
  overridden: null,
  class: 1,
  transport: null,
  server: null,
  port: null,
  path: '/dns-query',
  recursion: true,
  dnssec: false,
  authenticData: true,
  checkingDisabled: false,
  bufferSize: 1232,
  timeoutMs: 5000,
  tries: 3,
  maxRecords: RECORDS_MAX,
  ignoreTruncation: false,
  output: 'dig',
  family: null,
  opcode: 0,
  ednsVersion: 0,
  ednsOptions: [],
  serial: null,
  showQuery: false,
  show: everything,
  idn: true,
  search: false,
  showSearch: false,
  ndots: null,
  domain: null,
  resolvConf: '/etc/resolv.conf',
  trace: false,
  key: null,
  source: null,
  color: null,
  noColor: false,
};

/** An `ndots query` option and its effect on the current query. */
export interface QueryOption<T = unknown> extends Option<T> {
  /** @param value undefined if the option has none */
  set(draft: Draft, value: T | undefined, on: boolean): void;
}

export function setting<T>(option: Option<T>, set: QueryOption<T>['set']): QueryOption<T> {
  return { ...option, set };
}

/** An option that stores its value. `+no…` restores the default. */
export function stored<K extends keyof Draft>(
  key: K,
  option: Option<NonNullable<Draft[K]>>,
): QueryOption {
  return setting(option, (draft, value) => void (draft[key] = value ?? fresh[key]));
}

/** A flag that sets some properties. */
export function sets(
  names: string,
  help: string,
  properties: Partial<Draft>,
  off: Partial<Draft> = properties,
): QueryOption {
  return setting(flag(names, help), (draft, _value, on) => {
    Object.assign(draft, on ? properties : off);
  });
}
