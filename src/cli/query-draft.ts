/** What one query of `ndots query` asks for, finished and while it is being read. */
import { Problem } from '../base/problem.ts';
import type { EdnsOption } from '../wire/edns.ts';

export type Transport = 'udp' | 'tcp' | 'tls' | 'https';

export interface QueryOptions {
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly transport: Transport;
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
  readonly show: Parts;
  /** Names outside ASCII go out in their xn-- form. */
  readonly idn: boolean;
}

/** Which parts of dig's text are printed. */
export interface Parts {
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

/** What has been read of one query. */
export type Draft = {
  -readonly [K in keyof QueryOptions]: K extends 'name' | 'type' | 'transport' | 'port'
    ? QueryOptions[K] | null
    : QueryOptions[K];
};

const everything: Parts = {
  question: true,
  answer: true,
  authority: true,
  additional: true,
  comments: true,
  stats: true,
  ttl: true,
  class: true,
};

export const fresh: Draft = {
  name: null,
  type: null,
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
};

export function integer(what: string, text: string, least: number, most: number): number {
  if (/^\d{1,6}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  throw usage(`${what} takes a whole number from ${least} to ${most}, not "${text}"`);
}

export function usage(text: string, hint?: string): Problem {
  return new Problem({
    code: 'usage',
    text,
    hint,
    remedy: 'ndots query --help shows the options.',
  });
}
