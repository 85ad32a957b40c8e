/**
 * What glibc's releases do differently, as distributions ship them: with the fixes of the release's own branch, which
 * is why the rewritten parser of answers counts from 2.34 on.
 */
import { Releases } from './releases.ts';

/** What one release of glibc does differently from others. */
export interface GlibcTraits {
  /** The services of a nsswitch.conf without a `hosts:` line. */
  readonly defaultServices: string;
  /** nsswitch.conf as before the new reader of 2.33: comments are left out, and an error ends a line, not the file. */
  readonly oldNsswitch: boolean;
  /** `[SUCCESS=continue]` and `[SUCCESS=merge]` add up what the services have. */
  readonly addsServices: boolean;
  /**
   * Answers and errors as since the rewrite of nss_dns: in a pair an address counts only behind the CNAMEs that lead to
   * its owner, and for IPv4 alone a CNAME without an address is "no data".
   */
  readonly newAnswers: boolean;
  /** After an error in serial mode the reply to a question is waited for that was never sent. */
  readonly waitsForUnsent: boolean;
  /** Knows the option `no-aaaa`. */
  readonly noAaaa: boolean;
  /** Knows the option `strict-error`, and `-` before an option clears it. */
  readonly strictError: boolean;
}

/** The releases of glibc, oldest first. */
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

/** The release under programs that are modelled on glibc without a version of it: that of the measured ones. */
export const usualGlibc: GlibcTraits = glibcReleases.traitsOf('2.36');
