/** The target of a configuration, which is a CoreDNS or node-cache release, or ndots. */
import { Problem } from '../../server/base/problem.ts';
import { newestCore, nodeCacheReleases } from './releases.ts';
import { isBefore, readVersion, type Version } from './release-version.ts';

/** The server that runs the configuration. For node-cache, `version` is that of the included CoreDNS. */
export type LintTarget =
  | { readonly kind: 'ndots' }
  | {
      readonly kind: 'coredns' | 'node-cache';
      /** Null if unknown, as for an image without a tag. Rules about specific releases do not apply then. */
      readonly version: Version | null;
      /** As a person wrote it. */
      readonly label: string;
    };

/**
 * Parses `ndots`, `coredns@1.11.3` or `node-cache@1.26.4`, where the version is optional.
 * @throws Problem (`usage`)
 */
export function parseTarget(text: string): LintTarget {
  if (text === 'ndots') return { kind: 'ndots' };
  const [, kind, version] = /^(coredns|node-cache)(?:@v?(\d+(?:\.\d+){1,2}))?$/.exec(text) ?? [];
  if (kind === undefined) {
    throw new Problem({
      code: 'usage',
      text: `--target must be ndots, coredns@VERSION or node-cache@VERSION, not "${text}"`,
      remedy: 'Example: --target coredns@1.11.3',
    });
  }
  return targetOf(
    kind as 'coredns' | 'node-cache',
    version === undefined ? null : readVersion(version),
  );
}

/** The target run by a container image, or null if it is another program. */
export function targetOfImage(image: string): LintTarget | null {
  if (/(?:^|\/)ndots(?:-[\w.-]+)?(?:[:@]|$)/.test(image)) return { kind: 'ndots' };
  const [, path = '', tag = ''] = /^([^@]*?)(?::([^/:@]*))?(?:@.*)?$/.exec(image) ?? [];
  const [, digits] = /^v?(\d+\.\d+\.\d+)/.exec(tag) ?? [];
  const version = digits === undefined ? null : readVersion(digits);
  if (path.endsWith('node-cache')) return targetOf('node-cache', version);
  return path.endsWith('coredns') ? targetOf('coredns', version) : null;
}

/** The target that a chart installs, or null if it is another chart. */
export function targetOfChart(chart: string): LintTarget | null {
  return /(?:^|\/|rke2-)coredns(?:-v?\d[^/]*)?$/.test(chart) ? targetOf('coredns', null) : null;
}

/** True if defects in CoreDNS count, because an option, image or chart says that it is in use. */
export function isOfCore(
  target: LintTarget | null,
): target is Exclude<LintTarget, { kind: 'ndots' }> {
  return target !== null && target.kind !== 'ndots';
}

function targetOf(kind: 'coredns' | 'node-cache', version: Version | null): LintTarget {
  if (version === null) return { kind, label: kind, version };
  const label = `${kind}@${version.join('.')}`;
  return { kind, label, version: kind === 'coredns' ? version : coreOf(version) };
}

/** The CoreDNS version in a node-cache release, taken from the newest listed release that is not newer. */
function coreOf(version: Version): Version {
  const known = nodeCacheReleases.filter(([own]) => !isBefore(version, own));
  return known.at(-1)?.[1] ?? nodeCacheReleases[0]![1];
}

/** The newest known release if the target claims to be newer, otherwise null. */
export function newestBefore(target: LintTarget | null): string | null {
  if (!isOfCore(target) || target.version === null) return null;
  const newest = target.kind === 'coredns' ? newestCore : nodeCacheReleases.at(-1)![0];
  const given = readVersion(target.label.slice(target.label.indexOf('@') + 1));
  return isBefore(newest, given) ? newest.join('.') : null;
}

/** The target's CoreDNS release, or null if it is unknown or the target is ndots. */
export function coreVersionOf(target: LintTarget | null): Version | null {
  return isOfCore(target) ? target.version : null;
}
