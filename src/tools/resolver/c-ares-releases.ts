/**
 * The differences between releases of c-ares. 1.20 to 1.22 rewrote most of it: up to 1.21 `c-ares-old.ts`
 * sends, from 1.22 on `c-ares-channel.ts`.
 */
import { Releases } from './releases.ts';

/** The behaviour of one release of c-ares. */
export interface CaresTraits {
  /** NODATA ends the walk. */
  readonly nodataEnds: boolean;
  /**
   * True: a trailing dot disables the search list. False: once the name as typed has failed, search domains
   * are appended after the dot.
   */
  readonly dotIsFinal: boolean;
  /**
   * HOSTALIASES is ignored; or an alias is searched like a typed name; or an alias is looked up without the
   * search list.
   */
  readonly aliases: 'none' | 'searched' | 'alone';
  /** The names that are answered without a server: none, `localhost`, or also the names below it. */
  readonly localhost: 'none' | 'alone' | 'below';
  /** True if `localhost` is recognised regardless of case. */
  readonly foldsLocalhost: boolean;
  /** True if an IPv4 address given as the name is still queried for AAAA. */
  readonly asksForLiterals: boolean;
  /** True if names with characters that host names cannot have are refused. */
  readonly hostNames: boolean;
  /** Bytes of a name on the wire. */
  readonly longestName: number;
  /** True if `search .` yields the name as written rather than a name with two dots. */
  readonly rootDomain: boolean;
  /** True if lookups fail without a search list. */
  readonly needsSearchList: boolean;
  /** True if the search continues after SERVFAIL and REFUSED for a single label. */
  readonly singleLabelGoesOn: boolean;
  /** An address counts only after the CNAMEs that lead to its owner. */
  readonly ordersCnames: boolean;
  /** True if a CNAME without an address in the last reply crashes the process. */
  readonly diesOfCname: boolean;
  /**
   * The answer for one family that ends retries for the other: none, one with any address, or one with an
   * IPv4 address.
   */
  readonly enough: 'never' | 'any' | 'ipv4';
  /** The reader of settings (`c-ares-conf.ts`). */
  readonly reader: 1 | 2 | 3;
  /** `#` and `;` begin a comment anywhere in a line. */
  readonly cutsComments: boolean;
  /** True if LOCALDOMAIN is rejected if it has unprintable characters. */
  readonly printableOnly: boolean;
  /** True if a server's address may have a port and an interface. */
  readonly zonedServers: boolean;
  /** True if it supports the options `timeout:` and `attempts:`. */
  readonly timeoutOption: boolean;
  /** The default of ndots, and whether `ndots:0` is accepted. */
  readonly ndots: 0 | 1;
  readonly ndotsZero: boolean;
  /** Milliseconds; the first attempt. */
  readonly timeoutMs: number;
  readonly attempts: number;
  /** Lines of the hosts file that share an address or a name are one entry. */
  readonly mergesHosts: boolean;
  /**
   * True: a name in the hosts file is final even if it lacks the requested family. False: DNS is queried, and
   * `localhost` gets loopback addresses.
   */
  readonly hostsFinal: boolean;
  /** Servers are sorted by their failures. */
  readonly sortsServers: boolean;
  /** True if, of servers with equal failures, the one whose failure is longest ago comes first. */
  readonly oldestFailureFirst: boolean;
  /** The UDP size in EDNS; 0: no OPT record. */
  readonly ednsSize: number;
  readonly cookies: boolean;
  /** True if FORMERR counts as a lack of EDNS support even if the reply has an OPT record. */
  readonly doubtsEdns: boolean;
  readonly caches: boolean;
  /** Time-outs follow the measured latency. */
  readonly adapts: boolean;
  /** Silence counts as a failure of the server. */
  readonly countsSilence: boolean;
  /** A broken connection counts as a failure of its server before its queries go elsewhere. */
  readonly blamesFirst: boolean;
  /** A send error breaks the connection, and so fails all its queries. */
  readonly breaksOnSend: boolean;
  /** True if a query is repeated only after all replies of a joint read have been handled. */
  readonly defersRetries: boolean;
  /** True if a query also ends only then, so that an error next to an address is still repeated. */
  readonly defersEnds: boolean;
  /** True if idle connections are closed after the time-outs are handled instead of before. */
  readonly closesLast: boolean;
  /** True if SERVFAIL, REFUSED and NOTIMP are reported as the reason of a failure. */
  readonly tellsErrors: boolean;
  /** True if a name that cannot be sent is reported as a bad name rather than as a lack of memory. */
  readonly tellsBadName: boolean;
  /** True if a closed port is reported differently from silence. */
  readonly tellsRefusal: boolean;
  /** The event after which a new socket replaces an open one: never, once its server has failed, or after a time-out. */
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
    [
      '1.28.0',
      {
        aliases: 'alone',
        reader: 3,
        cutsComments: false,
        needsSearchList: true,
      },
    ],
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
    [
      '1.34.0',
      {
        foldsLocalhost: true,
        printableOnly: true,
        closesLast: false,
      },
    ],
    ['1.34.1'],
    ['1.34.2'],
    ['1.34.3', { enough: 'ipv4', doubtsEdns: true }],
    ['1.34.4'],
    // As in Debian, with the security fix of 1.34.6.
    ['1.34.5', { hostsFinal: false, defersEnds: true }],
    ['1.34.6', { newSocket: 'failure', closesLast: true }],
    ['1.34.7', { newSocket: 'timeout', oldestFailureFirst: true }],
    ['1.34.8'],
    ['1.34.9', { cutsComments: true }],
  ],
);
