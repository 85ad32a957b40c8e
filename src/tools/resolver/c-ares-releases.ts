/**
 * The differences between c-ares releases. Most of it was rewritten between 1.20 and 1.22. Up to 1.21, queries are sent
 * by `c-ares-old.ts`, and from 1.22 on by `c-ares-channel.ts`.
 */
import { Releases } from './releases.ts';

export interface CaresTraits {
  /** True if NODATA ends the search. */
  readonly nodataEnds: boolean;
  /**
   * True if a trailing dot disables the search list. If false, search domains are appended after the dot once the name
   * as typed has failed.
   */
  readonly dotIsFinal: boolean;
  /**
   * Selects whether HOSTALIASES is ignored, an alias is searched like a typed name, or an alias is looked up without
   * the search list.
   */
  readonly aliases: 'none' | 'searched' | 'alone';
  /** The names answered without a server: none, only `localhost`, or also those under it. */
  readonly localhost: 'none' | 'alone' | 'below';
  /** True if `localhost` is recognised in any case. */
  readonly foldsLocalhost: boolean;
  /** True if AAAA is still queried when the name is an IPv4 address. */
  readonly asksForLiterals: boolean;
  /** True if names are rejected when they contain characters that host names may not have. */
  readonly hostNames: boolean;
  /** The maximum length of a name on the wire, in bytes. */
  readonly longestName: number;
  /** True if `search .` results in the name as written, false if it results in a name with two dots. */
  readonly rootDomain: boolean;
  /** True if lookups fail when there is no search list. */
  readonly needsSearchList: boolean;
  /** True if the search for a single label continues after SERVFAIL or REFUSED. */
  readonly singleLabelGoesOn: boolean;
  /** True if an address counts only after the CNAMEs that lead to its owner. */
  readonly ordersCnames: boolean;
  /** True if the process crashes because the last reply has a CNAME without an address. */
  readonly diesOfCname: boolean;
  /**
   * The answer for one family that stops retries for the other: none, one with any address, or one with an IPv4
   * address.
   */
  readonly enough: 'never' | 'any' | 'ipv4';
  /** The settings reader (`c-ares-conf.ts`). */
  readonly reader: 1 | 2 | 3;
  /** True if `#` and `;` start a comment anywhere in a line. */
  readonly cutsComments: boolean;
  /** True if LOCALDOMAIN is rejected when it has unprintable characters. */
  readonly printableOnly: boolean;
  /** True if a server's address may include a port and an interface. */
  readonly zonedServers: boolean;
  /** True if the `timeout:` and `attempts:` options are supported. */
  readonly timeoutOption: boolean;
  /** The default for ndots, and whether `ndots:0` is accepted. */
  readonly ndots: 0 | 1;
  readonly ndotsZero: boolean;
  /** The timeout for the first attempt, in milliseconds. */
  readonly timeoutMs: number;
  readonly attempts: number;
  /** True if hosts file lines with the same address or name form one entry. */
  readonly mergesHosts: boolean;
  /**
   * True if a name in the hosts file is final even without the requested family. If false, DNS is queried and
   * `localhost` gets loopback addresses.
   */
  readonly hostsFinal: boolean;
  readonly sortsServers: boolean;
  /** True if, among servers with the same number of failures, the one whose failure was longest ago comes first. */
  readonly oldestFailureFirst: boolean;
  /** The UDP size advertised in EDNS, or 0 if there is no OPT record. */
  readonly ednsSize: number;
  readonly cookies: boolean;
  /** True if FORMERR is taken as a lack of EDNS support even when the reply has an OPT record. */
  readonly doubtsEdns: boolean;
  readonly caches: boolean;
  /** True if timeouts adapt to the measured latency. */
  readonly adapts: boolean;
  readonly countsSilence: boolean;
  /** True if a broken connection counts as a server failure before its queries move elsewhere. */
  readonly blamesFirst: boolean;
  /** True if a send error breaks the connection and all of its queries fail. */
  readonly breaksOnSend: boolean;
  /** True if a query is retried only after all replies in a joint read have been handled. */
  readonly defersRetries: boolean;
  /** True if a query also ends only then, so that an error arriving together with an address is still retried. */
  readonly defersEnds: boolean;
  /** True if idle connections are closed after timeouts are handled rather than before. */
  readonly closesLast: boolean;
  /** True if SERVFAIL, REFUSED and NOTIMP are reported as the cause of a failure. */
  readonly tellsErrors: boolean;
  /** True if a name that cannot be sent is reported as a bad name, false if it is reported as out of memory. */
  readonly tellsBadName: boolean;
  /** True if a closed port is reported differently from silence. */
  readonly tellsRefusal: boolean;
  /** The event after which a new socket replaces an open one: none, a server failure, or a timeout. */
  readonly newSocket: 'never' | 'failure' | 'timeout';
}

export const caresReleases: Releases<CaresTraits> = new Releases<CaresTraits>(
  'c-ares',
  {
    nodataEnds: true,
    dotIsFinal: false,
    aliases: 'none',
    localhost: 'none',
    foldsLocalhost: false,
    asksForLiterals: false,
    hostNames: false,
    longestName: 255,
    rootDomain: false,
    needsSearchList: false,
    singleLabelGoesOn: false,
    ordersCnames: true,
    diesOfCname: true,
    enough: 'never',
    reader: 1,
    cutsComments: true,
    printableOnly: false,
    zonedServers: false,
    timeoutOption: false,
    ndots: 1,
    ndotsZero: true,
    timeoutMs: 5000,
    attempts: 4,
    mergesHosts: false,
    hostsFinal: false,
    sortsServers: false,
    oldestFailureFirst: false,
    ednsSize: 0,
    cookies: false,
    doubtsEdns: false,
    caches: false,
    adapts: false,
    countsSilence: true,
    blamesFirst: false,
    breaksOnSend: false,
    defersRetries: false,
    defersEnds: false,
    closesLast: true,
    tellsErrors: false,
    tellsBadName: true,
    tellsRefusal: true,
    newSocket: 'never',
  },
  [
    ['1.17.1'],
    ['1.17.2'],
    [
      '1.18.0',
      {
        nodataEnds: false,
        dotIsFinal: true,
        aliases: 'searched',
        asksForLiterals: true,
        localhost: 'alone',
        diesOfCname: false,
      },
    ],
    ['1.18.1'],
    ['1.19.0', { localhost: 'below', asksForLiterals: false }],
    ['1.19.1'],
    [
      '1.20.0',
      { timeoutMs: 2000, attempts: 3, enough: 'any', rootDomain: true, tellsErrors: true },
    ],
    ['1.20.1'],
    ['1.21.0'],
    [
      '1.22.0',
      {
        hostNames: true,
        sortsServers: true,
        ednsSize: 1280,
        mergesHosts: true,
        hostsFinal: true,
        countsSilence: false,
        reader: 2,
        ndotsZero: false,
        tellsRefusal: false,
      },
    ],
    ['1.22.1'],
    ['1.23.0', { timeoutOption: true }],
    ['1.24.0', { countsSilence: true, zonedServers: true }],
    ['1.25.0', { blamesFirst: true }],
    ['1.26.0', { ordersCnames: false }],
    ['1.27.0', { ednsSize: 1232, longestName: 256 }],
    ['1.28.0', { aliases: 'alone', reader: 3, cutsComments: false, needsSearchList: true }],
    ['1.28.1', { needsSearchList: false }],
    ['1.29.0'],
    ['1.30.0'],
    ['1.31.0', { caches: true, ndots: 0, ndotsZero: true }],
    ['1.32.0', { adapts: true, tellsBadName: false }],
    ['1.32.1'],
    ['1.32.2'],
    ['1.32.3', { tellsBadName: true, tellsRefusal: true, breaksOnSend: true, defersRetries: true }],
    ['1.33.0', { cookies: true }],
    ['1.33.1', { singleLabelGoesOn: true, ndots: 1 }],
    ['1.34.0', { foldsLocalhost: true, printableOnly: true, closesLast: false }],
    ['1.34.1'],
    ['1.34.2'],
    ['1.34.3', { enough: 'ipv4', doubtsEdns: true }],
    ['1.34.4'],
    // As packaged in Debian, including the security fix from 1.34.6.
    ['1.34.5', { hostsFinal: false, defersEnds: true }],
    ['1.34.6', { newSocket: 'failure', closesLast: true }],
    ['1.34.7', { newSocket: 'timeout', oldestFailureFirst: true }],
    ['1.34.8'],
    ['1.34.9', { cutsComments: true }],
  ],
);
