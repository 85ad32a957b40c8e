/**
 * The differences between glibc releases as shipped by distributions, including fixes on each release branch. This is
 * why the rewritten answer parser counts from 2.34 on.
 */
import { Releases } from './releases.ts';

export interface GlibcTraits {
  /** The services used if there is no `hosts:` line in nsswitch.conf. */
  readonly defaultServices: string;
  /**
   * True if nsswitch.conf is read as before 2.33. Comments are removed, and a syntax error ends its line but does not
   * invalidate the file.
   */
  readonly oldNsswitch: boolean;
  /** True if `[SUCCESS=continue]` and `[SUCCESS=merge]` combine the results of services. */
  readonly addsServices: boolean;
  /**
   * True if replies are interpreted as they have been since nss_dns was rewritten. In a pair of replies, an address
   * counts only if the CNAMEs before it lead to its owner. For IPv4 alone, a CNAME without an address is "no data".
   */
  readonly newAnswers: boolean;
  /** True if, after an error in serial mode, glibc waits for a reply to a question that it never sent. */
  readonly waitsForUnsent: boolean;
  readonly noAaaa: boolean;
  /** True if the `strict-error` option is supported, and a leading `-` clears an option. */
  readonly strictError: boolean;
}

export const glibcReleases: Releases<GlibcTraits> = new Releases<GlibcTraits>(
  'glibc',
  {
    defaultServices: 'dns [!UNAVAIL=return] files',
    oldNsswitch: true,
    addsServices: true,
    newAnswers: false,
    waitsForUnsent: true,
    noAaaa: false,
    strictError: false,
  },
  [
    ['2.31'],
    ['2.32'],
    ['2.33', { oldNsswitch: false }],
    [
      '2.34',
      {
        defaultServices: 'files dns',
        addsServices: false,
        newAnswers: true,
        waitsForUnsent: false,
      },
    ],
    ['2.35'],
    ['2.36', { noAaaa: true }],
    ['2.37'],
    ['2.38'],
    ['2.39'],
    ['2.40'],
    ['2.41', { strictError: true }],
    ['2.42'],
    ['2.43'],
  ],
);

/** The release used for programs whose glibc version is not modelled, which is the one they were measured with. */
export const usualGlibc: GlibcTraits = glibcReleases.traitsOf('2.36');
