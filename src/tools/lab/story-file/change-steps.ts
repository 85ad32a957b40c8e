/**
 * Steps that change the cluster, including its DNS pods, objects, API server and node caches, and the internet's
 * answers.
 */
import type { JsonObject } from '../../../server/base/json-object.ts';
import { Problem } from '../../../server/base/problem.ts';
import { readManifests } from '../../../server/kube/manifests/manifest-file.ts';
import { parseAnswers, type Script } from '../../resolver/answers-file.ts';
import { usualNodeCorefile } from '../defaults.ts';
import { withEndpoints } from '../endpoints.ts';
import { keyOf, objectsOf } from '../objects.ts';
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

/** An answers file embedded in a story, either `{ rules: […] }` or just the rules. */
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
  help: 'starts a DNS server in a pod, optionally with a new Corefile, replacing the one that runs there',
  fields: {
    pod: dnsPod,
    corefile: optional(corefile, null, 'Corefile'),
    known: optional(text, null, 'a name that the server must answer before it counts as started'),
  },
  act: ({ pod, corefile: given, known }, { lab }) =>
    lab.startDns(pod, given ?? lab.plan.corefile, known ?? undefined),
});

const stopDns = kind({
  help: 'ends the DNS server in a pod without notifying the nodes',
  fields: { pod: dnsPod, signal: optional(ending, 'SIGKILL', 'the signal') },
  act: ({ pod, signal: how }, { lab }) => lab.stopDns(pod, how),
});

const signalDns = kind({
  help: 'sends a signal to the DNS server in a pod; the story continues at once',
  fields: { pod: dnsPod, signal: required(signal, 'the signal') },
  act: ({ pod, signal: how }, { lab }) => lab.signalDns(pod, how),
});

const propagation = optional(
  time(),
  0,
  'time from when a pod ends (or becomes ready) until all nodes have updated rules',
);
const grace = optional(
  time(),
  30_000,
  'time after SIGTERM until a server that is still running is killed',
);

const deletePod = kind({
  help: 'deletes a DNS pod: it gets SIGTERM, and the nodes are notified later',
  fields: { pod: dnsPod, propagation, grace },
  programs: ['conntrack'],
  act: ({ pod, propagation: propagationMs, grace: graceMs }, { lab }) =>
    deleteDnsPod(lab, pod, { propagationMs, graceMs }),
});

const serveBy = bareKind({
  help: 'selects the server for DNS pods that start from now on: ndots, or the one given on the command line',
  bare: word(['ndots', 'given']),
  act: (program, { lab }) => lab.serveBy(program),
});

const roll = kind({
  help: 'rolls the DNS Deployment: each pod in turn is deleted and replaced',
  fields: {
    corefile: optional(corefile, null, "the new pods' Corefile"),
    propagation,
    ready: optional(time(), 0, 'time from when a pod answers until its readiness probe succeeds'),
    grace,
  },
  programs: ['conntrack'],
  act({ corefile: given, propagation: propagationMs, ready, grace: graceMs }, { lab }) {
    return rollDns(lab, given ?? lab.plan.corefile, { propagationMs, readyMs: ready, graceMs });
  },
});

const endpoints = kind({
  help: "replaces a service's pods: the API server announces them, and all nodes get new rules",
  fields: {
    service: optional(named('service', 'NAMESPACE/NAME'), DNS_SERVICE, 'the service'),
    pods: required(listOf(named('pod', 'POD')), 'the pods; may be empty'),
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
  help: 'adds objects to the cluster, or replaces those with the same name: Services, EndpointSlices, Pods, Namespaces',
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
  help: 'removes an object from the cluster',
  fields: {
    kind: required(word(['Service', 'EndpointSlice', 'Pod', 'Namespace']), 'kind'),
    namespace: optional(text, 'default', 'namespace'),
    name: required(text, 'name'),
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

const api = bareKind({
  help: 'stops or starts the API server, or freezes it so that it sends no events until it is restarted',
  bare: word(['stop', 'start', 'freeze']),
  async act(what, { lab }) {
    if (what === 'stop') lab.stopApi();
    else if (what === 'start') await lab.startApi();
    else lab.api.freezeWatches();
  },
});

const internet = bareKind({
  help: 'changes the answers from the internet, using the rules of an answers file',
  bare: answers,
  act: (script, { lab }) => lab.answerOutside(script),
  model: (script, run) => void (run.script = script),
});

const cacheFields = {
  node,
  corefile: optional(
    corefileOf(usualNodeCorefile),
    usualNodeCorefile,
    'the template for its Corefile',
  ),
  rules: optional(word(['iptables', 'nftables']), null, 'the kind of rules it writes'),
  flags: optional(listOf(text), [], 'additional flags for ndots node-cache'),
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
  help: "starts a node cache on a node, where it takes over the DNS service's address",
  fields: cacheFields,
  act: (values, run) => run.lab.caches.start(values.node, cachePlan(values, run)),
});

const upgradeNodeCache = kind({
  help: 'starts another node cache, which takes over from the running one',
  fields: cacheFields,
  act: (values, run) => run.lab.caches.upgrade(values.node, cachePlan(values, run)),
});

const stopNodeCache = kind({
  help: 'ends the node cache on a node',
  fields: { node, signal: optional(ending, 'SIGTERM', 'the signal') },
  act: ({ node: where, signal: how }, { lab }) => lab.caches.stop(where, how),
});

const signalNodeCache = kind({
  help: 'sends a signal to the node cache on a node; the story continues at once',
  fields: { node, signal: required(signal, 'the signal') },
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
