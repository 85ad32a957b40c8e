/** What the releases of Go's own resolver do differently (package net). */
import { Releases } from './releases.ts';

/** What one release of Go's resolver does differently from others. */
export interface GoTraits {
  /**
   * Which names of 254 bytes are refused: if true those typed without a final dot, else those typed
   * with one.
   */
  readonly longNeedsDot: boolean;
  /** Whether `search .` is ignored. */
  readonly skipsRootDomain: boolean;
  /** Whether it knows the options `trust-ad`, `edns0` and `no-reload`. */
  readonly newOptions: boolean;
  /** Names besides localhost that it leaves to nss-myhostname. */
  readonly ownNames: readonly string[];
  /**
   * Whether, without cgo, everything that would ask for libc is ignored and unknown services of
   * nsswitch.conf stand for DNS.
   */
  readonly ownOrder: boolean;
  /**
   * When names in `.local` are left to libc: always, in cgo builds, or only if nsswitch.conf lists
   * mdns.
   */
  readonly local: 'always' | 'cgo' | 'mdns';
  /** Which wording GODEBUG=netdns=1 uses. */
  readonly wording: 1 | 2 | 3;
  /** Whether GODEBUG=netedns0=0 turns EDNS off. */
  readonly ednsSetting: boolean;
  /** Whether a name that is missing in the hosts file, the only source, gives "no such host". */
  readonly filesNotFound: boolean;
  /** Whether libc's "no data" is reported as "no such host". */
  readonly nodataNotFound: boolean;
  /** Whether `.onion` is checked in every candidate instead of in the typed name. */
  readonly onionByCandidate: boolean;
  /** Whether an additional record shows that an empty reply is meant as an answer. */
  readonly additionalCounts: boolean;
  /** Whether a reply that is truncated even over TCP is used. */
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
