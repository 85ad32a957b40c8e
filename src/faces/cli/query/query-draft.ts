/** The settings of one query of `ndots query`, complete and during parsing. */
import type { ColourOptions } from '../colour-options.ts';
import type { RemoteServer } from '../../../server/transport/one-exchange.ts';
import type { TsigSigningKey } from '../../../server/transport/tsig-keys.ts';
import type { EdnsOption } from '../../../server/wire/edns.ts';
import type { Protocol } from '../../../server/wire/transports.ts';
import type { Option } from '../option.ts';

/** The transports that the verb speaks. */
export type QueryProtocol = Exclude<Protocol, 'grpc'>;

export interface QueryOptions extends ColourOptions {
  readonly name: string;
  readonly type: number;
  /** The type as a word of the command line; null: there was none. */
  readonly typeWord: string | null;
  /** A word for a type that a later one replaced. */
  readonly overridden: string | null;
  readonly class: number;
  readonly transport: QueryProtocol;
  /** Host or address; null = the first server of /etc/resolv.conf. */
  readonly server: string | null;
  readonly port: number;
  /** Path of a DoH server. */
  readonly path: string;
  readonly recursion: boolean;
  readonly dnssec: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  /** Bytes offered by EDNS; null = no OPT record. */
  readonly bufferSize: number | null;
  readonly timeoutMs: number;
  readonly tries: number;
  /** A transfer with more records than that is ended. */
  readonly maxRecords: number;
  /** Stay with the truncated answer. */
  readonly ignoreTruncation: boolean;
  readonly output: 'dig' | 'short' | 'json';
  /** Family of a server given by name; null = what the machine prefers. */
  readonly family: 4 | 6 | null;
  readonly opcode: number;
  readonly ednsVersion: number;
  readonly ednsOptions: readonly EdnsOption[];
  /** The serial that an IXFR starts from. */
  readonly serial: number | null;
  /** Print the query, too. */
  readonly showQuery: boolean;
  readonly show: PrintedParts;
  /** Sends non-ASCII names in their xn-- form. */
  readonly idn: boolean;
  /** Walk the search list of resolv.conf. */
  readonly search: boolean;
  /** Print the replies on the way, too. */
  readonly showSearch: boolean;
  /** In place of the file's; null = the file's. */
  readonly ndots: number | null;
  /** The one domain to search; null = those of the file. */
  readonly domain: string | null;
  /** Servers, search list and ndots are those of this file. */
  readonly resolvConf: string;
  /** From the root down, server by server. */
  readonly trace: boolean;
  /** TSIG key of the query and its reply; null: unsigned. */
  readonly key: TsigSigningKey | null;
  /** Source address (port 0: any); null: chosen by the system. */
  readonly source: RemoteServer | null;
}

/** The parts of dig's text to print. */
export interface PrintedParts {
  readonly question: boolean;
  readonly answer: boolean;
  readonly authority: boolean;
  readonly additional: boolean;
  /** Header, OPT and the titles of sections. */
  readonly comments: boolean;
  /** Query time, server, size. */
  readonly stats: boolean;
  /** The TTL and the class of a record. */
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

/** An endless transfer is abandoned after minutes; larger zones are rare. */
const RECORDS_MAX = 100_000_000;

/** A query of which nothing has been read yet: the defaults. */
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

/** An option of `ndots query`: its effect on the current query. */
export interface QueryOption<T = unknown> extends Option<T> {
  /** @param value undefined if it was given without one */
  set(draft: Draft, value: T | undefined, on: boolean): void;
}

/** Makes an option of `ndots query` from an option and its effect. */
export function setting<T>(option: Option<T>, set: QueryOption<T>['set']): QueryOption<T> {
  return { ...option, set };
}
