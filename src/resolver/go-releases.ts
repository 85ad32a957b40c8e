/** What the releases of Go's own resolver do differently (package net). */
import { Releases } from './releases.ts';

/** What one release of Go's resolver does differently from others. */
export interface GoTraits {
  /** Candidates of 254 bytes: refused with a final dot typed, or without one. */
  readonly longNeedsDot: boolean;
  /** `search .` is no search domain. */
  readonly skipsRootDomain: boolean;
  /** Knows the options `trust-ad`, `edns0` and `no-reload`. */
  readonly newOptions: boolean;
  /** The names that nss-myhostname owns besides localhost. */
  readonly ownNames: readonly string[];
  /** Without cgo, nothing that asks for libc is looked at, and unknown services of nsswitch.conf stand for DNS. */
  readonly ownOrder: boolean;
  /** Names in `.local` go to libc: all of them, those of a cgo build, or only beside an mdns service. */
  readonly local: 'always' | 'cgo' | 'mdns';
  /** Which wording of the lines that GODEBUG=netdns=1 prints. */
  readonly wording: 1 | 2 | 3;
  /** GODEBUG=netedns0=0 turns EDNS off. */
  readonly ednsSetting: boolean;
  /** A hosts file alone that lacks the name means "no such host". */
  readonly filesNotFound: boolean;
  /** libc's "no data" means "no such host". */
  readonly nodataNotFound: boolean;
  /** `.onion` is looked for in every candidate, not in the typed name. */
  readonly onionByCandidate: boolean;
  /** An additional record in an empty reply shows that the server means it. */
  readonly additionalCounts: boolean;
  /** A truncated reply over TCP is used. */
  readonly truncatedTcp: boolean;
}

/** The releases of Go, oldest first. */
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
