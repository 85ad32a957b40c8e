/**
 * Steps that change the cluster: its DNS pods, objects, API server and node caches, and the answers of the
 * internet.
 */
import { child, text as textOf, type JsonObject } from '../../../server/base/json-object.ts';
import { Problem } from '../../../server/base/problem.ts';
import { readManifests } from '../../../server/kube/manifests/manifest-file.ts';
import { parseAnswers, type Script } from '../../resolver/answers-file.ts';
import { usualNodeCorefile } from '../defaults.ts';
import { withEndpoints } from '../endpoints.ts';
import { objectsOf } from '../objects.ts';
import type { NodeCachePlan } from '../node-caches.ts';
import { DNS_SERVICE } from '../cluster-plan.ts';
import { deleteDnsPod, rollDns } from '../roll.ts';
import { corefile, corefileOf } from './corefile-shape.ts';
import {
  anything,
  listOf,
  optional,
  required,
  text,
  time,
  word,
  type YamlShape,
} from '../../../server/kube/manifests/yaml-shape.ts';
import { named, type StepKind } from './story-reading.ts';
import { bareKind, kind, type StoryRun } from './step.ts';

const dnsPod = required(named('pod', 'POD'), 'the pod');
const node = required(named('node', 'NODE'), 'the node');
const signal = word(['SIGTERM', 'SIGKILL', 'SIGSTOP', 'SIGCONT', 'SIGUSR1']);
const ending = word(['SIGTERM', 'SIGKILL']);

/** An answers file within a story: `{ rules: […] }`, or only the rules. */
export const answers: YamlShape<Script> = {
  placeholder: '[{ name, type, answer }, …]',
  read(value, path, reading) {
    const whole = Array.isArray(value) ? { delay: 1, rules: value as unknown } : value;
    try {
      return parseAnswers(whole, 'the internet');
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const [, number] = /: rule (\d+)/.exec(error.message) ?? [];
      const rule = number === undefined ? [] : [Number(number) - 1];
      const inner = Array.isArray(value) ? rule : ['rules', ...rule];
      const words = error.message.replace(/^the internet: /, '');
      reading.tell(
        [...path, ...inner],
        words,
        error.hint ?? 'docs/answers-file.md describes them.',
      );
      return parseAnswers({}, '');
    }
  },
};

export const objects: YamlShape<readonly JsonObject[]> = {
  placeholder: '[OBJECT, …]',
  read(value, path, reading) {
    const list = listOf(anything).read(value, path, reading);
    list.forEach((each, index) => {
      const { problems } = readManifests(JSON.stringify(each), 'the story');
      for (const { message, remedy, hint } of problems)
        reading.tell([...path, index], message, hint ?? remedy ?? undefined);
    });
    return list as readonly JsonObject[];
  },
};

const startDns = kind({
  help: 'a DNS server is started in a pod, perhaps with another Corefile, in the place of the one that runs there',
  fields: {
    pod: dnsPod,
    corefile: optional(corefile, null, 'its Corefile'),
    known: optional(text, null, 'a name that it must answer before it counts as started'),
  },
  act: ({ pod, corefile: given, known }, { lab }) =>
    lab.startDns(pod, given ?? lab.plan.corefile, known ?? undefined),
});

const stopDns = kind({
  help: 'the DNS server in a pod ends; the nodes are not notified',
  fields: { pod: dnsPod, signal: optional(ending, 'SIGKILL', 'the signal') },
  act: ({ pod, signal: how }, { lab }) => lab.stopDns(pod, how),
});

const signalDns = kind({
  help: 'the DNS server in a pod gets a signal; the story continues at once',
  fields: { pod: dnsPod, signal: required(signal, 'which') },
  act: ({ pod, signal: how }, { lab }) => lab.signalDns(pod, how),
});

const propagation = optional(
  time(),
  0,
  'from the end (or the readiness) of a pod until all nodes have rules that say so',
);
const grace = optional(time(), 30_000, 'what has not ended this long after SIGTERM is killed');

const deletePod = kind({
  help: 'a DNS pod is deleted: it gets SIGTERM, and later the nodes are notified',
  fields: { pod: dnsPod, propagation, grace },
  programs: ['conntrack'],
  act: ({ pod, propagation: propagationMs, grace: graceMs }, { lab }) =>
    deleteDnsPod(lab, pod, { propagationMs, graceMs }),
});

const serveBy = bareKind({
  help: 'DNS servers that start from now on are ndots, or the server that the command line gives',
  bare: word(['ndots', 'given']),
  act: (program, { lab }) => lab.serveBy(program),
});

const roll = kind({
  help: 'the DNS Deployment is rolled: every pod in turn is deleted and replaced',
  fields: {
    corefile: optional(corefile, null, 'of the new pods'),
    propagation,
    ready: optional(time(), 0, 'from a pod that answers until its readiness probe has seen it'),
    grace,
  },
  programs: ['conntrack'],
  act({ corefile: given, propagation: propagationMs, ready, grace: graceMs }, { lab }) {
    return rollDns(lab, given ?? lab.plan.corefile, { propagationMs, readyMs: ready, graceMs });
  },
});

const endpoints = kind({
  help: 'a service has these pods from now on: the API server announces them, and all nodes get new rules',
  fields: {
    service: optional(named('service', 'NAMESPACE/NAME'), DNS_SERVICE, 'the service'),
    pods: required(listOf(named('pod', 'POD')), 'the pods; an empty list: none'),
  },
  act({ service, pods }, { lab, memory }) {
    memory.slices ??= lab.objects.slices;
    const addresses = pods.map((pod) => lab.pod(pod).addresses[0] ?? '');
    lab.change({
      slices: withEndpoints(lab.objects.slices, service, addresses, memory.slices),
    });
  },
});

const apply = bareKind({
  help: 'objects are added to the cluster, or take the place of those of their names: Services, EndpointSlices, Pods, Namespaces',
  bare: objects,
  act(list, { lab }) {
    const { services, slices } = objectsOf(list);
    const others = list.filter(({ kind: what }) => what === 'Pod' || what === 'Namespace');
    for (const one of others) lab.api.put(one['kind'] as 'Pod' | 'Namespace', one);
    const without = (all: readonly JsonObject[], these: readonly JsonObject[]): JsonObject[] =>
      all.filter((one) => !these.some((other) => keyOf(other) === keyOf(one)));
    lab.change({
      services: [...without(lab.objects.services, services), ...services],
      slices: [...without(lab.objects.slices, slices), ...slices],
    });
  },
});

const remove = kind({
  help: 'an object is taken out of the cluster',
  fields: {
    kind: required(word(['Service', 'EndpointSlice', 'Pod', 'Namespace']), 'its kind'),
    namespace: optional(text, 'default', 'where it is'),
    name: required(text, 'its name'),
  },
  act({ kind: what, namespace, name }, { lab }) {
    const key = `${namespace}/${name}`;
    const rest = (all: readonly JsonObject[]): JsonObject[] =>
      all.filter((one) => keyOf(one) !== key);
    if (what === 'Service') lab.change({ services: rest(lab.objects.services) });
    else if (what === 'EndpointSlice') lab.change({ slices: rest(lab.objects.slices) });
    else lab.api.delete(what, { metadata: { namespace, name } });
  },
});

function keyOf(raw: JsonObject): string {
  const metadata = child(raw, 'metadata');
  return `${textOf(metadata, 'namespace') || 'default'}/${textOf(metadata, 'name')}`;
}

const api = bareKind({
  help: 'the API server stops, starts, or sends no more events until it is restarted',
  bare: word(['stop', 'start', 'freeze']),
  async act(what, { lab }) {
    if (what === 'stop') lab.stopApi();
    else if (what === 'start') await lab.startApi();
    else lab.api.freezeWatches();
  },
});

const internet = bareKind({
  help: 'the internet answers otherwise from now on: rules of an answers file',
  bare: answers,
  act: (script, { lab }) => lab.answerOutside(script),
  model: (script, run) => void (run.script = script),
});

const cacheFields = {
  node,
  corefile: optional(
    corefileOf(usualNodeCorefile),
    usualNodeCorefile,
    'the template of its Corefile',
  ),
  rules: optional(word(['iptables', 'nftables']), null, 'how it writes its rules'),
  flags: optional(listOf(text), [], 'more flags of ndots node-cache'),
} as const;

function cachePlan(
  {
    corefile: template,
    rules,
    flags,
  }: { corefile: string; rules: NodeCachePlan['rules'] | null; flags: readonly string[] },
  { lab }: StoryRun,
): NodeCachePlan {
  return {
    corefile: template,
    service: lab.serviceAddress(DNS_SERVICE),
    upstream: lab.serviceAddress('kube-system/kube-dns-upstream'),
    rules: rules ?? lab.plan.mode,
    flags,
    known: 'kubernetes.default.svc.cluster.local.',
  };
}

const startNodeCache = kind({
  help: 'a node cache is started on a node: it takes the address of the DNS service there',
  fields: cacheFields,
  act: (values, run) => run.lab.caches.start(values.node, cachePlan(values, run)),
});

const upgradeNodeCache = kind({
  help: 'another node cache is started beside the one that serves, and takes over from it',
  fields: cacheFields,
  act: (values, run) => run.lab.caches.upgrade(values.node, cachePlan(values, run)),
});

const stopNodeCache = kind({
  help: 'the node cache of a node is ended',
  fields: { node, signal: optional(ending, 'SIGTERM', 'the signal') },
  act: ({ node: where, signal: how }, { lab }) => lab.caches.stop(where, how),
});

const signalNodeCache = kind({
  help: 'the node cache of a node gets a signal; the story continues at once',
  fields: { node, signal: required(signal, 'which') },
  act: ({ node: where, signal: how }, { lab }) => lab.caches.signal(where, how),
});

export const changeSteps: Readonly<Record<string, StepKind>> = {
  startDns,
  stopDns,
  signalDns,
  deletePod,
  serveBy,
  roll,
  setEndpoints: endpoints,
  apply,
  delete: remove,
  api,
  internet,
  startNodeCache,
  upgradeNodeCache,
  stopNodeCache,
  signalNodeCache,
};
