/**
 * What the releases of c-ares do differently. 1.20 to 1.22 rewrote most of it: up to 1.21 `c-ares-old.ts` sends, from
 * 1.22 on `c-ares-channel.ts`.
 */
import { Releases } from './releases.ts';

/** What one release of c-ares does differently from others. */
export interface CaresTraits {
  // What is asked.
  /** NODATA ends the walk. */
  readonly nodataEnds: boolean;
  /** A final dot keeps the search list out; else the domains follow the dot once the name as it is has failed. */
  readonly dotIsFinal: boolean;
  /** HOSTALIASES: not read, an alias that is searched like the name, or one that is asked alone. */
  readonly aliases: 'none' | 'searched' | 'alone';
  /** What is answered without a server: nothing, `localhost`, or all below it too. */
  readonly localhost: 'none' | 'alone' | 'below';
  /** In any case of its letters. */
  readonly foldsLocalhost: boolean;
  /** An IPv4 address as the name is asked for in IPv6 all the same. */
  readonly asksForLiterals: boolean;
  /** Names with other letters than those of host names are refused. */
  readonly hostNames: boolean;
  /** Most bytes that a name may have on the wire. */
  readonly longestName: number;
  /** `search .` makes the name as it is, not one with two dots. */
  readonly rootDomain: boolean;
  /** Without a search list nothing is looked up. */
  readonly needsSearchList: boolean;
  /** SERVFAIL and REFUSED for a single label go on, too. */
  readonly singleLabelGoesOn: boolean;
  // What is made of replies.
  /** An address counts only behind the CNAMEs that lead to its owner. */
  readonly ordersCnames: boolean;
  /** A CNAME without an address, as the last reply to a name, ends the process. */
  readonly diesOfCname: boolean;
  /** An answer to one family ends the repetitions of the other: never, with any address, with an IPv4 address. */
  readonly enough: 'never' | 'any' | 'ipv4';
  // resolv.conf, nsswitch.conf, the environment, the hosts file.
  /** Which of its three ways of reading (`c-ares-conf.ts`). */
  readonly reader: 1 | 2 | 3;
  /** `#` and `;` begin a comment anywhere in a line. */
  readonly cutsComments: boolean;
  /** A LOCALDOMAIN with other than printable letters cannot be read. */
  readonly printableOnly: boolean;
  /** Servers may have a port and an interface. */
  readonly zonedServers: boolean;
  /** Knows `timeout:` and `attempts:`. */
  readonly timeoutOption: boolean;
  /** ndots where no option sets it, and whether `ndots:0` counts. */
  readonly ndots: 0 | 1;
  readonly ndotsZero: boolean;
  /** Milliseconds of the first attempt. */
  readonly timeoutMs: number;
  readonly attempts: number;
  /** Lines of the hosts file that share an address or a name are one entry. */
  readonly mergesHosts: boolean;
  /** A name in the hosts file is found there, though it lacks the family; else DNS is asked, and `localhost` added to. */
  readonly hostsFinal: boolean;
  // How it is sent.
  /** Servers are sorted by their failures. */
  readonly sortsServers: boolean;
  /** Among servers that failed equally often, the one whose failure is longest ago comes first. */
  readonly oldestFailureFirst: boolean;
  /** Bytes that are offered by EDNS; 0 = no OPT. */
  readonly ednsSize: number;
  readonly cookies: boolean;
  /** FORMERR with an OPT is taken for a server that knows no EDNS, too. */
  readonly doubtsEdns: boolean;
  readonly caches: boolean;
  /** Time-outs follow the measured latency. */
  readonly adapts: boolean;
  /** Silence counts as a failure of the server. */
  readonly countsSilence: boolean;
  /** A broken connection counts as a failure of its server before its queries go elsewhere. */
  readonly blamesFirst: boolean;
  /** A packet that cannot be sent breaks the connection, and so everything that waits on it. */
  readonly breaksOnSend: boolean;
  /** A query is repeated only after all that was read together with its reply has been looked at. */
  readonly defersRetries: boolean;
  /** And it ends only then: an error beside an address is repeated still. */
  readonly defersEnds: boolean;
  /** Idle connections are closed after the time-outs are looked at, not before. */
  readonly closesLast: boolean;
  /** SERVFAIL, REFUSED and NOTIMP are what a query is said to have failed with. */
  readonly tellsErrors: boolean;
  /** A name that cannot be sent is called that, not a lack of memory. */
  readonly tellsBadName: boolean;
  /** A closed port is told from silence. */
  readonly tellsRefusal: boolean;
  /** When the next query leaves from a new socket: never early, once the server has failed, after a time-out. */
  readonly newSocket: 'never' | 'failure' | 'timeout';
}

/** The releases of c-ares, oldest first. */
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
    // As Debian ships it, with the security fix of 1.34.6.
    ['1.34.5', { hostsFinal: false, defersEnds: true }],
    ['1.34.6', { newSocket: 'failure', closesLast: true }],
    ['1.34.7', { newSocket: 'timeout', oldestFailureFirst: true }],
    ['1.34.8'],
    ['1.34.9', { cutsComments: true }],
  ],
);
