/** The target of a configuration, which is a CoreDNS or node-cache release, or ndots. */
import { Problem } from '../../server/base/problem.ts';
import { newestCore, nodeCacheReleases } from './releases.ts';

/** The server that runs the configuration. For node-cache, `version` is that of the included CoreDNS. */
export type LintTarget =
  | { readonly kind: 'ndots' }
  | {
      readonly kind: 'coredns' | 'node-cache';
      /** Null if unknown, as for an image without a tag. Rules about specific releases do not apply then. */
      readonly version: string | null;
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
  return targetOf(kind as 'coredns' | 'node-cache', version);
}

/** The target run by a container image, or null if it is another program. */
export function targetOfImage(image: string): LintTarget | null {
  if (/(?:^|\/)ndots(?:-[\w.-]+)?(?:[:@]|$)/.test(image)) return { kind: 'ndots' };
  const [, path = '', tag = ''] = /^([^@]*?)(?::([^/:@]*))?(?:@.*)?$/.exec(image) ?? [];
  const [, digits] = /^v?(\d+\.\d+\.\d+)/.exec(tag) ?? [];
  if (path.endsWith('node-cache')) return targetOf('node-cache', digits);
  return path.endsWith('coredns') ? targetOf('coredns', digits) : null;
}

/** The target that a chart installs, or null if it is another chart. */
export function targetOfChart(chart: string): LintTarget | null {
  return /(?:^|\/|rke2-)coredns(?:-v?\d[^/]*)?$/.test(chart) ? targetOf('coredns') : null;
}

/** True if defects in CoreDNS count, because an option, image or chart says that it is in use. */
export function isOfCore(
  target: LintTarget | null,
): target is Exclude<LintTarget, { kind: 'ndots' }> {
  return target !== null && target.kind !== 'ndots';
}

/** @param digits may lack the last number: `1.11` is 1.11.0 */
function targetOf(kind: 'coredns' | 'node-cache', digits?: string): LintTarget {
  if (digits === undefined) return { kind, label: kind, version: null };
  const version = numbersIn(digits).join('.');
  const label = `${kind}@${version}`;
  return { kind, label, version: kind === 'coredns' ? version : coreOf(version) };
}

/** The CoreDNS version in a node-cache release, taken from the newest listed release that is not newer. */
function coreOf(version: string): string {
  const known = nodeCacheReleases.filter(([own]) => !isBefore(version, own));
  return known.at(-1)?.[1] ?? nodeCacheReleases[0]![1];
}

/** The newest known release if the target claims to be newer, otherwise null. */
export function newestBefore(target: LintTarget | null): string | null {
  if (!isOfCore(target) || target.version === null) return null;
  const newest = target.kind === 'coredns' ? newestCore : nodeCacheReleases.at(-1)![0];
  return isBefore(newest, target.label.slice(target.label.indexOf('@') + 1)) ? newest : null;
}

/** The target's CoreDNS release, or null if it is unknown or the target is ndots. */
export function coreVersionOf(target: LintTarget | null): string | null {
  return isOfCore(target) ? target.version : null;
}

/** True if the first release is older than the second. */
export function isBefore(version: string, other: string): boolean {
  const [own, others] = [numbersIn(version), numbersIn(other)];
  const at = own.findIndex((part, index) => part !== others[index]);
  return at >= 0 && own[at]! < others[at]!;
}

function numbersIn(version: string): readonly number[] {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return [major, minor, patch];
}
