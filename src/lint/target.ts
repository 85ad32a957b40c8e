/** The target of a configuration: a release of CoreDNS or of node-cache, or ndots. */
import { Problem } from '../base/problem.ts';
import { newestCore, nodeCacheReleases } from './releases.ts';
import { isBefore, readVersion, type Version } from './version.ts';

/**
 * The server that runs the configuration. For node-cache, `version` is that of the CoreDNS it
 * includes.
 */
export type LintTarget =
  | { readonly kind: 'ndots' }
  | {
      readonly kind: 'coredns' | 'node-cache';
      readonly version: Version;
      /** As a person wrote it. */
      readonly label: string;
    };

/** Parses `ndots`, `coredns@1.11.3` or `node-cache@1.26.4`. @throws Problem (`usage`) */
export function parseTarget(text: string): LintTarget {
  if (text === 'ndots') return { kind: 'ndots' };
  const [, kind, version] = /^(coredns|node-cache)@v?(\d+(?:\.\d+){1,2})$/.exec(text) ?? [];
  if (kind === undefined || version === undefined) {
    throw new Problem({
      code: 'usage',
      text: `--target takes ndots, coredns@VERSION or node-cache@VERSION, not "${text}"`,
      remedy: 'As in: --target coredns@1.11.3',
    });
  }
  return targetOf(kind as 'coredns' | 'node-cache', readVersion(version));
}

/**
 * The target that a container image runs; null if it is another program, or if its tag is not a
 * version.
 */
export function targetOfImage(image: string): LintTarget | null {
  if (/(?:^|\/)ndots(?:[:@]|$)/.test(image)) return { kind: 'ndots' };
  const [, path = '', tag = ''] = /^([^@]*):v?(\d+\.\d+\.\d+)/.exec(image) ?? [];
  if (path === '') return null;
  if (path.endsWith('node-cache')) return targetOf('node-cache', readVersion(tag));
  return path.endsWith('coredns') ? targetOf('coredns', readVersion(tag)) : null;
}

function targetOf(kind: 'coredns' | 'node-cache', version: Version): LintTarget {
  const label = `${kind}@${version.join('.')}`;
  return { kind, label, version: kind === 'coredns' ? version : coreOf(version) };
}

/**
 * The CoreDNS version in a node-cache release: that of the newest listed release that is not newer.
 */
function coreOf(version: Version): Version {
  const known = nodeCacheReleases.filter(([own]) => !isBefore(version, own));
  return known.at(-1)?.[1] ?? nodeCacheReleases[0]![1];
}

/** The newest release that is known, if the target claims a newer one; else null. */
export function newestBefore(target: LintTarget | null): string | null {
  if (target === null || target.kind === 'ndots') return null;
  const newest = target.kind === 'coredns' ? newestCore : nodeCacheReleases.at(-1)![0];
  const given = readVersion(target.label.slice(target.label.indexOf('@') + 1));
  return isBefore(newest, given) ? newest.join('.') : null;
}

/** The CoreDNS release of the target; null if there is none, or if it is ndots. */
export function coreVersionOf(target: LintTarget | null): Version | null {
  return target === null || target.kind === 'ndots' ? null : target.version;
}
