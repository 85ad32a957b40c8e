/** Rules about a pod's probes and termination. */
import type { Place } from '../../../server/base/problem.ts';
import type { DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';
import { parseDuration } from '../../../server/base/duration.ts';
import { child, children, text, type JsonObject } from '../../../server/base/json-object.ts';
import {
  failsWithin,
  quickReadiness,
  readinessPatch,
  readinessTimes,
  unreadySeconds,
  type ReadinessTimes,
} from '../readiness.ts';
import { corefileRule, type LintRule, type Tell } from '../lint-rule.ts';
import { lineOf, type LintObject, type LintedCorefile, type Subject } from '../subject.ts';
import { dnsServerIn, podSpecOf } from '../workload.ts';
import { ownCorefiles } from './own-corefiles.ts';

const probes: LintRule = {
  code: 'CF17',
  severity: 'error',
  summary:
    'a readiness probe that does not use ready, or health in several blocks at the same address',
  find(subject, tell) {
    for (const object of subject.objects) {
      if (object.kind === 'HelmValues') helmProbes(object, subject, tell);
      const server = dnsServerIn(object);
      if (server?.role === 'server') readiness(object, tell);
      if (server !== null) askedPlugins(object, subject, tell);
    }
    bareCorefiles(subject, tell);
    for (const { blocks } of subject.corefiles) {
      const seen = new Map<string, Place>();
      for (const { at, args } of blocks.flatMap((block) => block.directives('health'))) {
        const address = args[0]?.text ?? ':8080';
        const first = seen.get(address);
        seen.set(address, first ?? at.place);
        if (first === undefined) continue;
        tell({
          at,
          text: `health at ${address} is repeated in a second server block`,
          severity: 'note',
          hint: `It is already in ${first.file}:${first.line}, and health covers the whole process.`,
          remedy: 'Keep one of them, or give this one another address.',
        });
      }
    }
  },
};

function readiness(object: LintObject, tell: Tell): void {
  const { container } = dnsServerIn(object)!;
  const { value, path } = container;
  const get = child(child(value, 'readinessProbe'), 'httpGet');
  if (value['readinessProbe'] === undefined) {
    tell({
      at: { object, path: [...path, 'name'] },
      text: `container ${container.name} has no readinessProbe`,
      severity: 'warning',
      hint: 'A pod gets queries before it has read the Services, and answers NXDOMAIN.',
      remedy: 'Add: readinessProbe: { httpGet: { path: /ready, port: 8181 } }',
    });
    return;
  }
  if (text(get, 'path') === '/health') {
    tell({
      at: { object, path: [...path, 'readinessProbe', 'httpGet', 'path'] },
      text: 'the readiness probe uses /health, which is OK before the services are known and during lameduck',
      remedy: 'Use the ready plugin: path /ready, port 8181.',
    });
  }
}

/** The paths of plugins that probes use, and their usual ports. */
const answering: Readonly<Record<string, { readonly plugin: string; readonly usual: number }>> = {
  '/ready': { plugin: 'ready', usual: 8181 },
  '/health': { plugin: 'health', usual: 8080 },
};

/** Probes for a plugin that is not in the Corefile or uses another port. */
function askedPlugins(object: LintObject, subject: Subject, tell: Tell): void {
  const { container, role } = dnsServerIn(object)!;
  for (const name of ['readinessProbe', 'livenessProbe', 'startupProbe']) {
    const get = child(child(container.value, name), 'httpGet');
    const asked = answering[text(get, 'path')];
    if (asked === undefined) continue;
    const path = [...container.path, name];
    for (const corefile of ownCorefiles(object, subject, role))
      needsPlugin(
        asked,
        corefile,
        { name, object, path, port: portOf(get, container.value) },
        tell,
      );
  }
}

/** A probe's port, which may be given as the name of one of the container's ports. */
function portOf(get: JsonObject, container: JsonObject): unknown {
  const { port } = get;
  const named = children(container, 'ports').find((each) => text(each, 'name') === port);
  return named === undefined ? port : named['containerPort'];
}

interface HttpProbe {
  readonly name: string;
  readonly object: LintObject;
  readonly path: DocumentPath;
  readonly port: unknown;
}

function needsPlugin(
  { plugin, usual }: { readonly plugin: string; readonly usual: number },
  corefile: LintedCorefile,
  { name, object, path, port }: HttpProbe,
  tell: Tell,
): void {
  const uses = corefile.blocks.flatMap((block) => block.directives(plugin));
  if (uses.length === 0) {
    const imports = [...corefile.problems, ...corefile.warnings].some(({ code }) =>
      code.startsWith('import-'),
    );
    tell({
      at: { object, path },
      text: `${name} uses the ${plugin} plugin, which ${corefile.file} does not have`,
      severity: imports ? 'warning' : 'error',
      hint: `${name === 'readinessProbe' ? 'The probe fails, so no pod becomes ready.' : 'The probe fails, so kubelet keeps restarting every pod.'}${imports ? ' The files that the Corefile imports are not in the input and may contain it.' : ''}`,
      remedy: `Add ${plugin} to the server block of the root zone.`,
    });
    return;
  }
  const ports = uses.map(({ args }) => Number(/:(\d+)$/.exec(args[0]?.text ?? '')?.[1] ?? usual));
  if (typeof port !== 'number' || ports.includes(port)) return;
  tell({
    at: { object, path: [...path, 'httpGet', 'port'] },
    text: `${name} uses port ${port}, but ${plugin} answers at ${ports.join(', ')}`,
    remedy: 'Give both the same port.',
  });
}

/** The usual probe addresses, for Corefiles whose pods are not in the input. */
function bareCorefiles(subject: Subject, tell: Tell): void {
  const owned = new Set(
    subject.objects.flatMap((object) => {
      const server = dnsServerIn(object);
      return server === null ? [] : ownCorefiles(object, subject, server.role);
    }),
  );
  for (const corefile of subject.corefiles) {
    const { role, fragment, object, blocks } = corefile;
    if (fragment || owned.has(corefile) || object?.kind === 'HelmValues') continue;
    const block = blocks.find((each) => role === 'node-cache' || each.has('kubernetes'));
    if (block === undefined) continue;
    for (const plugin of role === 'node-cache' ? ['health'] : ['health', 'ready'])
      if (!blocks.some((each) => each.has(plugin)))
        tell({
          at: block.block,
          text: `no server block has ${plugin}`,
          severity: 'note',
          hint:
            plugin === 'ready'
              ? 'A readiness probe for /ready fails. Without one, pods get queries before they know the services.'
              : 'A liveness probe for /health fails. There is no lameduck, so rollouts lose queries.',
          remedy: plugin === 'ready' ? 'Add: ready' : 'Add: health { lameduck 5s }',
        });
  }
}

function helmProbes(object: LintObject, { corefiles }: Subject, tell: Tell): void {
  const made = corefiles.find((each) => each.object === object);
  if (made === undefined) return;
  for (const [name, plugin] of [
    ['readinessProbe', 'ready'],
    ['livenessProbe', 'health'],
  ] as const) {
    if (child(object.value, name)['enabled'] === false) continue;
    if (made.blocks.some((block) => block.has(plugin))) continue;
    tell({
      at: { object, path: ['servers'] },
      text: `the chart's ${name} uses the ${plugin} plugin, which no server here has`,
      hint: `${name}.enabled is true by default, so no pod becomes ${plugin === 'ready' ? 'ready' : 'healthy'}.`,
      remedy: `Add: - name: ${plugin}`,
    });
  }
}

/** The usual time until all nodes know that a pod is terminating, in milliseconds. */
const PROPAGATION_MS = 5000;

const lameduck: LintRule = corefileRule({
  code: 'CF18',
  severity: 'warning',
  summary: 'lameduck that is missing, too short, or longer than the grace period',
  find(corefile, tell, subject) {
    // A node cache serves only its own node, so no other node has to remove it from its rules.
    if (corefile.role === 'node-cache') return;
    const grace = graceSeconds(corefile, subject);
    // No other node sends queries to a server that only listens on loopback.
    const remote = corefile.blocks.filter((block) => !block.isLocal);
    for (const directive of remote.flatMap((block) => block.directives('health'))) {
      const line = lineOf(directive, 'lameduck');
      const ms = line === null ? 0 : (parseDuration(line.args[0]?.text ?? '') ?? 0);
      if (ms < PROPAGATION_MS) {
        tell({
          at: line?.args[0] ?? directive.at,
          text:
            line === null
              ? 'health has no lameduck, so the server exits while nodes still send it queries'
              : `lameduck ${ms / 1000}s is shorter than the time until nodes learn that the pod is terminating`,
          hint: 'Each rollout and each scale-in loses queries, and each lost query costs a client 5 s.',
          remedy: 'Write: lameduck 5s',
          fix:
            line?.args[0] === undefined
              ? { kind: 'property', directive, text: 'lameduck 5s' }
              : { kind: 'word', token: line.args[0], text: '5s' },
        });
      }
      if (line !== null && grace !== null && ms >= grace * 1000)
        tell({
          at: line.args[0] ?? line,
          text: `lameduck ${ms / 1000}s does not end within terminationGracePeriodSeconds ${grace}`,
          severity: 'error',
          hint: 'The process is killed while it answers queries.',
          remedy: 'Raise the grace period above lameduck, or shorten lameduck.',
        });
    }
  },
});

/** The defaults in the charts for CoreDNS (1.43 and later) and ndots. */
const CHART_READINESS: ReadinessTimes = { periodSeconds: 5, failureThreshold: 1 };

const slowReadiness: LintRule = {
  code: 'CF59',
  severity: 'warning',
  summary: 'a readiness probe that fails after lameduck ends',
  find(subject, tell) {
    for (const object of subject.objects) {
      const probe = readinessOf(object);
      if (probe === null) continue;
      const lameducks = ownCorefiles(object, subject).flatMap((corefile) => lameduckOf(corefile));
      if (lameducks.length === 0) continue;
      // The shortest one, because any of the Corefiles may be the one in use.
      const lameduckMs = Math.min(...lameducks);
      const seconds = unreadySeconds(probe.times, probe.usual);
      if (failsWithin(seconds, lameduckMs)) continue;
      const quick = quickReadiness(lameduckMs);
      tell({
        at: { object, path: probe.path },
        text:
          seconds === Infinity
            ? 'a tcpSocket readiness probe fails only after the server has ended, not during lameduck'
            : `the readiness probe fails up to ${seconds} s after SIGTERM, but lameduck ends after ${lameduckMs / 1000} s`,
        hint: 'kube-proxy sends clients that reuse a source port to the old pod until it is unready or deleted, so each rollout loses their queries.',
        remedy:
          quick === null
            ? 'Write lameduck 5s, and periodSeconds: 2, failureThreshold: 1'
            : seconds === Infinity
              ? `Use /ready at port 8181, with periodSeconds: ${quick.periodSeconds}, failureThreshold: ${quick.failureThreshold}`
              : (probe.patch(lameduckMs) ??
                `Write periodSeconds: ${quick.periodSeconds}, failureThreshold: ${quick.failureThreshold}`),
      });
    }
  },
};

/** The readiness probe of an object that runs a DNS server behind a Service, or null if it has none. */
function readinessOf(object: LintObject): {
  readonly path: DocumentPath;
  readonly times: ReadinessTimes;
  readonly usual?: ReadinessTimes;
  /** The command that changes it, if there is one. */
  patch(lameduckMs: number): string | null;
} | null {
  if (object.kind === 'HelmValues') {
    // If a chart has CoreDNS's as a subchart, its values are below the subchart's name.
    const above = object.value['servers'] === undefined ? ['coredns'] : [];
    const values = above.length > 0 ? child(object.value, 'coredns') : object.value;
    const probe = child(values, 'readinessProbe');
    const times = readinessTimes(probe);
    const isSaid = times.periodSeconds !== null || times.failureThreshold !== null;
    if (probe['enabled'] === false || !isSaid) return null;
    const path = [...above, 'readinessProbe'];
    return { path, times, usual: CHART_READINESS, patch: () => null };
  }
  const server = dnsServerIn(object);
  if (server?.role !== 'server') return null;
  const { value, path, name } = server.container;
  const probe = child(value, 'readinessProbe');
  // A TCP probe succeeds until the server has closed its sockets. Probes that are missing or use another path are
  // CF17's job.
  const isTcp = probe['tcpSocket'] !== undefined;
  if (!isTcp && text(child(probe, 'httpGet'), 'path') !== '/ready') return null;
  return {
    path: [...path, 'readinessProbe'],
    times: isTcp ? { periodSeconds: Infinity, failureThreshold: 1 } : readinessTimes(probe),
    patch: (lameduckMs) =>
      object.kind === 'Pod' || isTcp ? null : readinessPatch(object, name, lameduckMs),
  };
}

/** The `lameduck` of a Corefile in milliseconds. Left out where CF18 reports that it is missing. */
function lameduckOf({ blocks }: LintedCorefile): readonly number[] {
  return blocks
    .flatMap((block) => block.directives('health'))
    .map((directive) => parseDuration(lineOf(directive, 'lameduck')?.args[0]?.text ?? '') ?? 0)
    .filter((ms) => ms > 0);
}

/** The terminationGracePeriodSeconds of the pods that run this Corefile, or null if unknown. */
function graceSeconds(corefile: LintedCorefile, subject: Subject): number | null {
  for (const object of subject.objects) {
    const given =
      object.kind === 'HelmValues'
        ? object.value['terminationGracePeriodSeconds']
        : dnsServerIn(object)?.role === 'server'
          ? podSpecOf(object)?.spec['terminationGracePeriodSeconds']
          : undefined;
    if (typeof given === 'number' && ownCorefiles(object, subject).includes(corefile)) return given;
  }
  return null;
}

export const probeRules: readonly LintRule[] = [probes, lameduck, slowReadiness];
