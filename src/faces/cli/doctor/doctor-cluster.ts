/**
 * `ndots doctor cluster`: a living cluster is examined, and what it is said of at the head and the
 * foot of the report.
 */
import { systemClock } from '../../../server/base/clock.ts';
import { secureRandom } from '../../../server/base/random.ts';
import type { Diagnosis } from '../../../tools/doctor/diagnosis.ts';
import { readNameservers } from '../../../server/engine/contract/nameservers.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { lint } from '../../../tools/lint/lint.ts';
import { examine } from '../../../tools/doctor/cluster/examine.ts';
import { serversOf, type ClusterFacts } from '../../../tools/doctor/cluster/facts.ts';
import { trafficOf } from '../../../tools/doctor/cluster/traffic.ts';
import { findingKinds } from '../../../tools/doctor/findings/table.ts';
import { rules } from '../../../tools/lint/plugins/lint-rules.ts';
import { systemProbeNetwork } from '../../../tools/probe/system-network.ts';
import { linesOf, wordsOf } from '../../../tools/resolver/resolv-conf.ts';
import { liveLookup } from '../check/check-lookup.ts';
import { accessOf, withCluster } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import type { DoctorOptions } from './doctor-options.ts';
import { lintedPlugins } from '../lint/linted-plugins.ts';
import { count, wrap, type Page } from '../page.ts';

/** Between two samples of what is counted, milliseconds. */
const FOR_MS = 5000;
const TRIES = 2;

/** Examines the cluster that is meant. Throws a `Problem` where nothing can be read. */
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

/**
 * The search path of this machine, if its resolv.conf is one of a pod: others say nothing of pods.
 */
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

/** What was looked at, in two lines. */
export function clusterHead(facts: ClusterFacts, { findings }: Diagnosis): string {
  const servers = serversOf(facts);
  const images = new Set(servers.map(({ image }) => image.replace(/^.*\//, '').replace(/@.*/, '')));
  const nodes = new Set(servers.map(({ node }) => node).filter((node) => node !== ''));
  const vips = (facts.service?.vips ?? []).map(({ host }) => host).join(', ');
  const traffic = trafficOf(facts);
  const percent = (share: number): string => `${Math.round(100 * share)} %`;
  const counts = (['critical', 'warning', 'info'] as const).map(
    (severity) =>
      `${findings.filter((finding) => finding.severity === severity).length} ${severity}`,
  );
  return [
    `${facts.cluster}: ${count(servers.length, 'DNS pod', 'DNS pods')}${images.size > 0 ? ` (${[...images].join(', ')})` : ''} on ${count(nodes.size, 'node', 'nodes')}${vips === '' ? '' : ` behind ${vips}`}; ${count(facts.clientPods, 'pod', 'pods')} in all`,
    traffic === null
      ? 'no metrics could be read'
      : `${traffic.perSecond.toFixed(0)} queries a second, ${percent(traffic.cached)} from the cache, ${percent(traffic.servfail)} SERVFAIL`,
    `${facts.answers === null ? 'not asked: this machine is not in the pod network' : `asked from here: ${count(facts.answers.replicas.length, 'DNS pod', 'DNS pods')} and the service`}; ${counts.join(', ')} of ${findingKinds.filter(({ inCluster }) => inCluster !== undefined).length} things that were looked for`,
  ].join('\n');
}

/** What stands where nothing critical was found. */
export function clusterWell(
  { answers, measurement }: ClusterFacts,
  { findings }: Diagnosis,
): string {
  if (answers === null)
    return measurement.measured.length === 0
      ? 'Nothing critical was found, but there is little to judge by: nobody could be asked, and no metrics could be read.'
      : 'Nothing critical was found in objects and counters; nobody could be asked from here. In a pod it shows more: ndots doctor cluster --rbac prints the rights that the pod’s account needs.';
  if (findings.length > 0)
    return 'Nothing critical: every DNS pod and the service answer as the API server has it.';
  return 'Not DNS, as far as this shows: every DNS pod and the service answer as the API server has it. If programs fail or wait, look at where they are: ndots doctor -i any on their node.';
}

/** What of a cluster could not be read, each once, and what was not judged for it. */
export function lackingOf({ lacking, measurement }: ClusterFacts): readonly string[] {
  const pods = measurement.without.filter(({ pod }) => pod.role === 'server');
  return [
    ...lacking.map(({ why, so }) => `${so}: ${why}`),
    ...pods.slice(0, 3).map(({ pod, why }) => `what ${pod.name} counts: ${why}`),
    ...(pods.length > 3 ? [`and ${pods.length - 3} more pods without metrics`] : []),
  ];
}

/** What could not be read, at the end of the report; empty if all was there. */
export function notReadText(lines: readonly string[], page: Page): string {
  if (lines.length === 0) return '';
  const told = lines.flatMap((line) => wrap(line, '  ', page));
  return `${page.paint.strong('Not read')}\n${told.join('\n')}\n`;
}

/** The cluster's part of the JSON document. */
export function clusterDocument(facts: ClusterFacts): object {
  const { cluster, namespace, service, clientPods, measurement, answers, lacking, proxyMode } =
    facts;
  return {
    name: cluster,
    namespace,
    service: service === null ? null : `${service.namespace}/${service.name}`,
    pods: clientPods,
    dnsPods: serversOf(facts).map(({ name, node, ready, image, restarts }) => ({
      name,
      node,
      ready,
      image,
      restarts,
    })),
    proxyMode,
    traffic: trafficOf(facts),
    asked: answers !== null,
    withoutMetrics: measurement.without.map(({ pod, why }) => ({ pod: pod.name, why })),
    lacking,
  };
}
