/** A story's steps, as a list of mappings with a single key, the kind of step, and an optional `as` that names it. */
import { isObject } from '../../../server/base/json-object.ts';
import { nearest, didYouMean } from '../../../server/base/problem.ts';
import type { Results } from './expression.ts';
import type { DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';
import { mapping, type YamlShape } from '../../../server/kube/manifests/yaml-shape.ts';
import { onlyWith, type StoryReading } from './story-reading.ts';
import type { ModelRun, StoryRun, StoryStep } from './step.ts';

const STEPS_MAX = 500;
const DEPTH_MAX = 8;

export const steps: YamlShape<readonly StoryStep[]> = {
  placeholder: '[STEP, …]',
  read(value, path, reading: StoryReading) {
    if (!Array.isArray(value)) {
      reading.tell(path, 'steps are a list', 'Example: [{ wait: 1s }]');
      return [];
    }
    if (value.length > STEPS_MAX) reading.tell(path, `${value.length} steps; at most ${STEPS_MAX}`);
    if (path.filter((part) => typeof part === 'number').length > DEPTH_MAX) {
      reading.tell(path, 'these steps are nested too deeply');
      return [];
    }
    return value
      .slice(0, STEPS_MAX)
      .flatMap((each: unknown, index) => readStep(each, [...path, index], reading) ?? []);
  },
};

function readStep(value: unknown, path: DocumentPath, reading: StoryReading): StoryStep | null {
  const known = Object.keys(reading.kinds);
  if (!isObject(value)) {
    const meant = typeof value === 'string' ? nearest(value, known) : null;
    const hint = meant === null ? 'Example: - wait: 1s' : `Did you mean - ${meant}: …?`;
    reading.tell(path, 'a step is a mapping', hint);
    return null;
  }
  const { as: given, only: server, ...rest } = value;
  const keys = Object.keys(rest);
  const [key] = keys;
  if (key === undefined) {
    reading.tell(path, 'what is this step to do?', `Known: ${known.join(', ')}`);
    return null;
  }
  for (const each of keys) {
    if (Object.hasOwn(reading.kinds, each)) continue;
    const hint = didYouMean(each, [...known, 'as', 'only'], `Known: ${known.join(', ')}`);
    reading.tell([...path, each], `there is no step "${each}"`, hint);
  }
  if (!keys.every((each) => Object.hasOwn(reading.kinds, each))) return null;
  if (keys.length > 1) {
    const hint = 'Write one step per line, each with its own dash.';
    reading.tell([...path, keys[1]!], `this is two steps: ${keys.join(' and ')}`, hint);
    return null;
  }
  const kind = reading.kinds[key]!;
  const name = nameOf(given, key, path, reading);
  for (const program of kind.programs) reading.programs.add(program);
  const shape = kind.bare ?? mapping(kind.fields, `the step ${key}`);
  const values = shape.read(rest[key], [...path, key], reading);
  const within = isObject(values)
    ? ['during', 'steps'].flatMap((part) => (values[part] ?? []) as readonly StoryStep[])
    : Array.isArray(values) && key === 'together'
      ? (values as readonly StoryStep[])
      : [];
  const only =
    server === undefined ? null : onlyWith.shape.read(server, [...path, 'only'], reading);
  const keep = (found: unknown, { results }: StoryRun | ModelRun): void => {
    if (found !== undefined) results.set(name, found as Results);
  };
  const { model } = kind;
  return {
    kind: key,
    name,
    results: Object.keys(kind.results),
    within,
    async run(run) {
      if (only !== null && only !== run.stage.server) return;
      keep(await kind.act(values as never, run as never, name), run);
    },
    model:
      model === undefined
        ? null
        : async (run) => keep(await model(values as never, run as never), run),
  };
}

function nameOf(given: unknown, key: string, path: DocumentPath, reading: StoryReading): string {
  if (given === undefined || given === null) return key;
  if (typeof given === 'string' && /^[A-Za-z_]\w{0,62}$/.test(given)) return given;
  const hint = 'Use letters, digits and _, and begin with a letter.';
  reading.tell([...path, 'as'], `${JSON.stringify(given)} is not a valid step name`, hint);
  return key;
}
