/** The differences between releases of Go's resolver (package `net`). */
import { Releases } from './releases.ts';

export interface GoTraits {
  /**
   * Selects which 254-byte names are rejected: if true, those typed without a trailing dot, and if false, those with
   * one.
   */
  readonly longNeedsDot: boolean;
  /** True if `search .` is ignored. */
  readonly skipsRootDomain: boolean;
  /** True if the options `trust-ad`, `edns0` and `no-reload` are supported. */
  readonly newOptions: boolean;
  /** Names other than localhost that are left to nss-myhostname. */
  readonly ownNames: readonly string[];
  /** True if programs without cgo ignore all reasons to use libc, and treat unknown nsswitch.conf services as DNS. */
  readonly ownOrder: boolean;
  /**
   * The condition for leaving `.local` names to libc: always, only in cgo builds, or only if nsswitch.conf lists mdns.
   */
  readonly local: 'always' | 'cgo' | 'mdns';
  /** The wording of GODEBUG=netdns=1. */
  readonly wording: 1 | 2 | 3;
  /** True if GODEBUG=netedns0=0 disables EDNS. */
  readonly ednsSetting: boolean;
  /** True if a name that is missing from the hosts file results in "no such host" when there is no other source. */
  readonly filesNotFound: boolean;
  /** True if libc's "no data" is reported as "no such host". */
  readonly nodataNotFound: boolean;
  /** True if `.onion` is checked in every candidate name rather than in the typed name. */
  readonly onionByCandidate: boolean;
  /** True if an additional record makes an empty reply count as an answer. */
  readonly additionalCounts: boolean;
  /** True if a reply is used even though it is truncated over TCP. */
  readonly truncatedTcp: boolean;
}

export const goReleases: Releases<GoTraits> = new Releases<GoTraits>(
  'go',
  {
    longNeedsDot: false,
    skipsRootDomain: false,
    newOptions: false,
    ownNames: ['gateway'],
    ownOrder: false,
    local: 'always',
    wording: 1,
    ednsSetting: false,
    filesNotFound: false,
    nodataNotFound: false,
    onionByCandidate: false,
    additionalCounts: false,
    truncatedTcp: false,
  },
  [
    ['1.19'],
    [
      '1.20',
      {
        longNeedsDot: true,
        skipsRootDomain: true,
        newOptions: true,
        filesNotFound: true,
        ownNames: ['_gateway', '_outbound'],
      },
    ],
    ['1.21', { ownOrder: true, local: 'cgo', wording: 2, ednsSetting: true, nodataNotFound: true }],
    ['1.22', { onionByCandidate: true }],
    ['1.23', { local: 'mdns', additionalCounts: true, truncatedTcp: true }],
    ['1.24', { wording: 3 }],
    ['1.25'],
    ['1.26'],
  ],
);
