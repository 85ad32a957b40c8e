/** Parses a YAML story, which is then played like a built-in one. Errors are reported with their position. */
import { isObject } from '../../../server/base/json-object.ts';
import { Problem, Problems, didYouMean, type Place } from '../../../server/base/problem.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { parseYaml, type DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';
import type { Script } from '../../resolver/answers-file.ts';
import type { Need } from '../machine.ts';
import type { Act, Stage, Story } from '../story.ts';
import { askSteps } from './ask-steps.ts';
import { answers, changeSteps } from './change-steps.ts';
import {
  clusterFields,
  readCluster,
  type ClusterValues,
  type ReadCluster,
} from './cluster-shape.ts';
import { expectation, filled, judged, type Expectation } from './expectation.ts';
import { flowSteps } from './flow-steps.ts';
import {
  listOf,
  mapping,
  oneOrMore,
  optional,
  required,
  text,
  whole,
  type FieldsOf,
  type YamlShape,
} from '../../../server/kube/manifests/yaml-shape.ts';
import { onlyWith, StoryReading, type Reference, type StepKind } from './story-reading.ts';
import { runSteps, type ModelRun, type StoryRun, type StoryStep } from './step.ts';
import { steps } from './step-list.ts';
import { faultSteps } from './fault-steps.ts';

export const stepKinds: Readonly<Record<string, StepKind>> = {
  ...askSteps,
  ...changeSteps,
  ...faultSteps,
  ...flowSteps,
};

/** The step whose results are the server and the mode of the service rules. */
const STAGE = 'stage';

export interface ActValues {
  readonly flaw: string | null;
  readonly cure: string | null;
  readonly command: string | null;
  readonly only: string | null;
  readonly steps: readonly StoryStep[];
  readonly expect: readonly Expectation[];
}

export const actFields: FieldsOf<ActValues> = {
  flaw: optional(text, null, 'title of an act that shows a fault'),
  cure: optional(text, null, 'title of an act that shows a fix'),
  command: optional(text, null, 'the command that a person would type, for the report'),
  only: onlyWith,
  steps: optional(steps, [], 'the steps, in order'),
  expect: required(
    listOf(expectation as YamlShape<Expectation>),
    'the expected facts; the story passes if all are true',
  ),
};

export interface StoryValues {
  readonly story: string;
  readonly title: string | null;
  readonly source: string | null;
  readonly given: readonly string[];
  readonly when: string;
  readonly needs: readonly Need[];
  readonly seconds: number;
  readonly cluster: ClusterValues | null;
  readonly acts: readonly ActValues[];
  readonly model: ModelValues | null;
}

interface ModelValues {
  readonly internet: Script | null;
  readonly acts: readonly ActValues[];
}

const rule = mapping(
  {
    rule: required(text, 'an iptables rule in the nat table'),
    part: required(text, 'the kernel feature that it needs'),
  },
  'a rule',
);

const need: YamlShape<Need> = {
  placeholder: `PROGRAM|${rule.placeholder}`,
  read: (value, path, reading) =>
    isObject(value)
      ? rule.read(value, path, reading)
      : { program: text.read(value, path, reading) },
};

const actList = listOf(mapping(actFields, 'an act'), 50);

export const modelFields: FieldsOf<ModelValues> = {
  internet: optional(answers, null, 'answers from the internet; by default, as in the cluster'),
  acts: required(actList, 'the acts; only lookup steps have results'),
};

export const storyFields: FieldsOf<StoryValues> = {
  story: required(text, 'name of the story'),
  title: optional(text, null, 'a one-line summary'),
  source: optional(text, null, 'where the incident was first reported'),
  given: optional(oneOrMore(text), [], 'the conditions, for the report'),
  when: optional(text, '', 'what happens, for the report'),
  needs: optional(oneOrMore(need), [], 'programs and kernel rules that the story needs'),
  seconds: optional(whole(0, 3600), 0, 'approximate duration'),
  cluster: optional(mapping(clusterFields, 'the cluster'), null, 'the cluster for the story'),
  acts: required(actList, 'the acts'),
  model: optional(
    mapping(modelFields, 'the model'),
    null,
    'what to play in virtual time if the story itself cannot be played',
  ),
};

/** A Corefile in a story and where it is, which is either in the story starting at `line` or in a file. */
export interface StoryCorefile {
  readonly text: string;
  readonly place: Place;
  readonly isOwnFile: boolean;
}

export interface StoryFile {
  readonly story: Story;
  /** The manifests for its cluster. */
  readonly objects: string;
  readonly corefiles: readonly StoryCorefile[];
}

/** @throws Problems with all errors, or the problem with the file */
export function readStoryFile(file: string): StoryFile {
  let content: string;
  try {
    content = readFileText(file, FILE_MAX.manifest);
  } catch (error) {
    throw new Problem({
      code: 'unreadable-file',
      text: `${file}: cannot read the story: ${whyFailed(error)}`,
      remedy: 'ndots lab init > story.yaml writes a sample',
      cause: error,
    });
  }
  return parseStory(content, file);
}

/** @param file its name in problems; file names in the story are relative to it */
export function parseStory(content: string, file: string): StoryFile {
  const { documents, problems } = parseYaml(content, file);
  if (problems.length > 0) throw new Problems(problems);
  const [document] = documents;
  const value = document?.value;
  if (document === undefined || documents.length !== 1 || !isObject(value)) {
    const text =
      documents.length > 1
        ? `${file} holds ${documents.length} documents`
        : `${file} holds no story`;
    throw wrong(
      text,
      { file, line: 1, column: 1 },
      'A story is one mapping: story, cluster, acts.',
    );
  }
  const reading = new StoryReading(file, stepKinds);
  const values = mapping(storyFields, 'a story').read(value, [], reading);
  const given =
    values.cluster ?? mapping(clusterFields, 'the cluster').read({}, ['cluster'], reading);
  const acts = (values.acts ?? []) as readonly ActValues[];
  const cluster = reading.mistakes.length === 0 ? readCluster(given, ['cluster'], reading) : null;
  checkActs(acts, reading, ['acts']);
  if (values.model?.acts !== undefined) checkActs(values.model.acts, reading, ['model', 'acts']);
  if (cluster !== null) checkReferences(cluster, reading);
  const found = [...reading.elsewhere, ...reading.problems(document, kindOfProblem)];
  if (found.length > 0 || cluster === null) throw new Problems(found);
  const corefiles = reading.corefiles.map(({ path, text: source, file: own }) => ({
    text: source,
    place: own === null ? document.place(path) : { file: own, line: 1, column: 0 },
    isOwnFile: own !== null,
  }));
  return {
    story: storyOf(values, acts, cluster, reading),
    objects: cluster.plan.objects,
    corefiles,
  };
}

function storyOf(
  values: StoryValues,
  acts: readonly ActValues[],
  cluster: ReadCluster,
  { programs, file }: StoryReading,
): Story {
  const { model, needs } = values;
  const own = needs.flatMap((one) => ('program' in one ? [one.program] : []));
  return {
    name: values.story,
    title: values.title ?? values.story,
    source: values.source ?? file,
    preconditions: values.given,
    trigger: values.when,
    needs: [
      ...[...new Set([...programs, ...own])].map((program) => ({ program })),
      ...needs.filter((one) => 'rule' in one),
    ],
    seconds: values.seconds,
    model: model === null ? null : () => modelled(model, cluster),
    play: (stage) => played(acts, cluster, stage),
  };
}

async function played(
  acts: readonly ActValues[],
  { plan }: ReadCluster,
  stage: Stage,
): Promise<readonly Act[]> {
  const run: StoryRun = {
    stage,
    lab: await stage.start(plan),
    results: new Map([[STAGE, { server: stage.server, rules: plan.mode ?? stage.mode }]]),
    undo: new Map(),
    memory: {},
    shown: [],
  };
  const done: Act[] = [];
  for (const act of acts) {
    if (act.only !== null && act.only !== stage.server) continue;
    run.shown = [];
    await runSteps(act.steps, run);
    done.push(actOf(act, run, stage.server));
  }
  return done;
}

async function modelled(
  { internet, acts }: ModelValues,
  { pods, plan, script }: ReadCluster,
): Promise<readonly Act[]> {
  const run: ModelRun = {
    pods,
    plan,
    script: internet ?? script,
    results: new Map(),
    ipv4Only: new Set(),
    shown: [],
  };
  const done: Act[] = [];
  for (const act of acts) {
    run.shown = [];
    for (const { model } of act.steps) await model?.(run);
    done.push(actOf(act, run, 'ndots'));
  }
  return done;
}

function actOf(
  { flaw, cure, command, steps: list, expect }: ActValues,
  { results, shown }: Pick<StoryRun, 'results' | 'shown'>,
  server: string,
): Act {
  return {
    kind: flaw === null ? 'cure' : 'flaw',
    title: filled(flaw ?? cure ?? '', results),
    command: filled(command ?? list.map(({ kind }) => kind).join(', '), results),
    packets: shown,
    facts: expect
      .filter(({ only }) => only === null || only === server)
      .map((each) => judged(each, results)),
  };
}

/** Checks that titles are unique and that all mentioned results exist. */
function checkActs(acts: readonly ActValues[], reading: StoryReading, place: DocumentPath): void {
  const isModel = place[0] === 'model';
  const known = new Map<string, Set<string>>(
    isModel ? [] : [[STAGE, new Set(['server', 'rules'])]],
  );
  const learn = (list: readonly StoryStep[]): void => {
    for (const { name, results, within, model } of list) {
      if (isModel && model === null) continue;
      const present = known.get(name) ?? new Set<string>();
      for (const result of results) present.add(result);
      known.set(name, present);
      learn(within);
    }
  };
  if (acts.length === 0)
    reading.tell(place, 'there are no acts', 'Example: - { flaw: TITLE, steps: [], expect: [] }');
  acts.forEach(({ flaw, cure, steps: list, expect }, index) => {
    const path = [...place, index];
    if ((flaw === null) === (cure === null))
      reading.tell(path, 'an act is a flaw or a cure', 'flaw: TITLE, or cure: TITLE');
    learn(list ?? []);
    if (expect !== undefined && expect.length === 0)
      reading.tell(
        [...path, 'expect'],
        'this act has no expectations',
        'A verdict must be able to fail.',
      );
    for (const one of expect ?? []) if (one !== null) checkMentions(one, known, reading);
  });
}

function checkMentions(
  { value, path }: Expectation,
  known: ReadonlyMap<string, ReadonlySet<string>>,
  reading: StoryReading,
): void {
  for (const { step, result } of value.mentions) {
    const results = known.get(step);
    if (results === undefined) {
      const hint = didYouMean(step, known.keys(), `Known: ${[...known.keys()].join(', ')}`);
      reading.tell(path, `no earlier step is called "${step}"`, hint);
    } else if (!results.has(result)) {
      const all = results.size === 0 ? 'It has none.' : `It has ${[...results].join(', ')}`;
      const hint = didYouMean(result, results, all);
      reading.tell(path, `the step "${step}" has no result "${result}"`, hint);
    }
  }
}

/** Checks that all pods, nodes and services mentioned in the steps exist. */
function checkReferences({ manifests, pods }: ReadCluster, reading: StoryReading): void {
  const podNames = pods.flatMap(({ namespace, name }) => [name, `${namespace}/${name}`]);
  const nodeNames = [
    ...new Set([
      ...manifests.filter(({ kind }) => kind === 'Node').map(({ name }) => name),
      ...pods.map(({ nodeName }) => nodeName),
    ]),
  ];
  const services = manifests
    .filter(({ kind }) => kind === 'Service')
    .map(({ namespace, name }) => `${namespace}/${name}`);
  const names: Readonly<Record<Reference['kind'], readonly string[]>> = {
    pod: podNames,
    node: nodeNames,
    machine: [...podNames, ...nodeNames, 'internet'],
    service: services,
    server: [...services, ...podNames],
  };
  const what: Readonly<Record<Reference['kind'], string>> = {
    pod: 'pod',
    node: 'node',
    machine: 'pod or node',
    service: 'service',
    server: 'service or pod',
  };
  for (const { path, kind, name } of reading.references) {
    if (kind === 'server' && /^[\d.]+$|:/.test(name)) continue;
    const count = names[kind].filter((one) => one === name).length;
    if (count > 1 && kind !== 'service')
      reading.tell(
        path,
        `${count} pods are called ${name}`,
        'Name its namespace too: NAMESPACE/NAME',
      );
    if (count > 0) continue;
    const whole = names[kind].filter((one) => kind === 'node' || one.includes('/'));
    const hint = didYouMean(name, names[kind], `Available: ${whole.join(', ')}`);
    reading.tell(path, `there is no ${what[kind]} ${name}`, hint);
  }
}

const kindOfProblem = { code: 'bad-story', remedy: 'docs/lab-stories.md describes the format' };

function wrong(text: string, place: Place, hint?: string): Problem {
  return new Problem({ ...kindOfProblem, text, place, hint });
}
