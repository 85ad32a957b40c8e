/** The settings for one `ndots query` query, both during parsing and complete. */
import type { ColourOptions } from '../colour-options.ts';
import type { RemoteServer } from '../../../server/transport/one-exchange.ts';
import type { TsigSigningKey } from '../../../server/transport/tsig-keys.ts';
import type { EdnsOption } from '../../../server/wire/edns.ts';
import type { Protocol } from '../../../server/wire/transports.ts';
import type { Option } from '../option.ts';

/** Transports that the command supports. */
export type QueryProtocol = Exclude<Protocol, 'grpc'>;

export interface QueryOptions extends ColourOptions {
  readonly name: string;
  readonly type: number;
  /** The type as given on the command line, or null if not given. */
  readonly typeWord: string | null;
  /** A type given earlier, which a later one replaced. */
  readonly overridden: string | null;
  readonly class: number;
  readonly transport: QueryProtocol;
  /** Host or address, or null for the first server in /etc/resolv.conf. */
  readonly server: string | null;
  readonly port: number;
  /** URL path on a DoH server. */
  readonly path: string;
  readonly recursion: boolean;
  readonly dnssec: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  /** EDNS buffer size, bytes; null: no OPT record. */
  readonly bufferSize: number | null;
  readonly timeoutMs: number;
  readonly tries: number;
  /** Limit of records after which a transfer is aborted. */
  readonly maxRecords: number;
  /** Accepts a truncated reply instead of retrying over TCP. */
  readonly ignoreTruncation: boolean;
  readonly output: 'dig' | 'short' | 'json';
  /** Address family for a server given by name, or null for the system's preference. */
  readonly family: 4 | 6 | null;
  readonly opcode: number;
  readonly ednsVersion: number;
  readonly ednsOptions: readonly EdnsOption[];
  /** The serial from which an IXFR starts. */
  readonly serial: number | null;
  /** Prints the query, too. */
  readonly showQuery: boolean;
  readonly show: PrintedParts;
  /** Sends non-ASCII names in their xn-- form. */
  readonly idn: boolean;
  /** Uses the search list in resolv.conf. */
  readonly search: boolean;
  /** Also prints the replies to earlier names in the search list. */
  readonly showSearch: boolean;
  /** Overrides the file's value; null: the file's. */
  readonly ndots: number | null;
  /** The only domain to search, or null for the file's domains. */
  readonly domain: string | null;
  /** The file with the servers, search list and ndots. */
  readonly resolvConf: string;
  /** Follows delegations from the root. */
  readonly trace: boolean;
  /** TSIG key for the query and its reply; null: unsigned. */
  readonly key: TsigSigningKey | null;
  /** Source address (port 0: any); null: chosen by the system. */
  readonly source: RemoteServer | null;
}

/** The parts of dig's output to print. */
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

/** Large enough for any zone, but ends an endless transfer after some minutes. */
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

/** An option of `ndots query` and its effect on the current query. */
export interface QueryOption<T = unknown> extends Option<T> {
  /** @param value undefined if the option was given without one */
  set(draft: Draft, value: T | undefined, on: boolean): void;
}

/** Combines an option with its effect. */
export function setting<T>(option: Option<T>, set: QueryOption<T>['set']): QueryOption<T> {
  return { ...option, set };
}
