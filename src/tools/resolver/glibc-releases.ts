/**
 * The differences between glibc releases as shipped by distributions, including the fixes on each release branch. That
 * is why the rewritten answer parser counts from 2.34 on.
 */
import { Releases } from './releases.ts';

/** The behaviour of a glibc release. */
export interface GlibcTraits {
  /** The services used if nsswitch.conf has no `hosts:` line. */
  readonly defaultServices: string;
  /**
   * True if nsswitch.conf is read as before 2.33: comments are removed, and a syntax error ends its line but does not
   * invalidate the file.
   */
  readonly oldNsswitch: boolean;
  /** True if `[SUCCESS=continue]` and `[SUCCESS=merge]` combine the results of services. */
  readonly addsServices: boolean;
  /**
   * True if replies are interpreted as they are since nss_dns was rewritten. In a pair of replies, an address counts
   * only if the preceding CNAMEs lead to its owner. For IPv4 alone, a CNAME without an address is "no data".
   */
  readonly newAnswers: boolean;
  /** True if, after an error in serial mode, glibc waits for the reply to a question it never sent. */
  readonly waitsForUnsent: boolean;
  /** True if the `no-aaaa` option is supported. */
  readonly noAaaa: boolean;
  /** True if the `strict-error` option is supported and a leading `-` clears an option. */
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

/** The release assumed for programs on glibc whose glibc version is not modelled: the one they were measured with. */
export const usualGlibc: GlibcTraits = glibcReleases.traitsOf('2.36');
