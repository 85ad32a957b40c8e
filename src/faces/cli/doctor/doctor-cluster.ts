/** `ndots doctor cluster`: examines a running cluster. */
import { systemClock } from '../../../server/base/clock.ts';
import { secureRandom } from '../../../server/base/random.ts';
import { readNameservers } from '../../../server/engine/contract/nameservers.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { lint } from '../../../tools/lint/lint.ts';
import { examine } from '../../../tools/doctor/cluster/examine.ts';
import type { ClusterFacts } from '../../../tools/doctor/cluster/facts.ts';
import { rules } from '../../../tools/lint/plugins/lint-rules.ts';
import { systemProbeNetwork } from '../../../tools/probe/system-network.ts';
import { linesOf, wordsOf } from '../../../tools/resolver/resolv-conf.ts';
import { liveLookup } from '../check/check-lookup.ts';
import { accessOf, withCluster } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import type { DoctorOptions } from './doctor-options.ts';
import { lintedPlugins } from '../lint/linted-plugins.ts';
import { wrap, type Page } from '../page.ts';

/** Time between two scrapes, milliseconds. */
const FOR_MS = 5000;
const TRIES = 2;

/**
 * Examines the selected cluster.
 * @throws Problem if nothing can be read
 */
export async function examineCluster(options: DoctorOptions, io: Io): Promise<ClusterFacts> {
  const access = accessOf(options, io);
  const { timeoutMs, namespace, domain, names, quiet } = options;
  const progress = (text: string): void => {
    if (!quiet) io.err(`ndots doctor: ${access.name}: ${text}\n`);
  };
  return withCluster(access, (client) =>
    examine({
      client,
      cluster: access.name,
      namespace,
      domain,
      names,
      search: ownSearch(),
      inPod: (io.env['KUBERNETES_SERVICE_HOST'] ?? '') !== '',
      forMs: options.forMs ?? FOR_MS,
      probe: {
        network: systemProbeNetwork(secureRandom, liveLookup(timeoutMs)),
        random: secureRandom,
        clock: systemClock,
        timeoutMs,
        tries: TRIES,
      },
      lint: (files) =>
        lint({ given: { files, passed: [] }, plugins: lintedPlugins, rules, target: null }),
      nowMs: Date.now(),
      signal: io.signal,
      progress,
    }),
  );
}

/** This machine's search path if its resolv.conf is that of a pod, otherwise empty. */
function ownSearch(): readonly string[] {
  try {
    const text = readFileText('/etc/resolv.conf', FILE_MAX.small);
    const list =
      linesOf(text)
        .map(wordsOf)
        .findLast(([key]) => key === 'search') ?? [];
    const isPod = list.some((domain) => domain.startsWith('svc.'));
    return isPod && readNameservers(text).length > 0 ? list.slice(1) : [];
  } catch {
    return [];
  }
}

/** Text for the end of the report. Empty if everything could be read. */
export function notReadText(lines: readonly string[], page: Page): string {
  if (lines.length === 0) return '';
  const told = lines.flatMap((line) => wrap(line, '  ', page));
  return `${page.paint.strong('Not read')}\n${told.join('\n')}\n`;
}
