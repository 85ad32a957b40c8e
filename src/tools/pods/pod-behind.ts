/**
 * Finds the pod that `deploy/web` or `svc/web` refers to. This is a running pod if there is one, and otherwise the
 * template from which it would be created.
 */
import {
  asObject,
  child,
  children,
  list,
  text,
  textMap,
  type JsonObject,
} from '../../server/base/json-object.ts';
import { Problem } from '../../server/base/problem.ts';
import { templatePaths, type PodSource } from './pod-source.ts';
import type { ResourceName } from './resource-name.ts';

/** The pod or template that was found. */
export interface FoundPod {
  readonly namespace: string;
  /** The pod's `spec`. */
  readonly spec: JsonObject;
  /** The pod's name, or null if this is a template because there is no pod. */
  readonly pod: string | null;
  /** A human-readable description: `pod shop/web-7d4b9c-x2x1z`, or `the template of Deployment shop/web`. */
  readonly name: string;
}

/** Throws a `Problem` if the object does not exist, or has no pod behind it. */
export async function podBehind(source: PodSource, wanted: ResourceName): Promise<FoundPod> {
  const { of, name } = wanted;
  const asked = wanted.namespace ?? source.namespace;
  const object = await source.get(of, asked, name);
  if (object === null) throw await notFound(source, wanted, asked);
  const namespace = text(child(object, 'metadata'), 'namespace') || asked || 'default';
  const whole = `${of.kind} ${namespace}/${name}`;
  if (of.kind === 'Pod')
    return { namespace, spec: child(object, 'spec'), pod: name, name: `pod ${namespace}/${name}` };
  const selector = selectorOf(object);
  const pods = selector === null ? [] : await source.pods(namespace, selector);
  const pod = best(pods);
  if (pod !== null) {
    const own = text(child(pod, 'metadata'), 'name');
    const told = `pod ${namespace}/${own} of ${whole}`;
    return { namespace, spec: child(pod, 'spec'), pod: own, name: told };
  }
  const path = templatePaths[of.kind];
  if (path !== undefined) {
    const template = path.reduce<JsonObject>((raw, key) => child(raw, key), object);
    const told = `the template of ${whole}`;
    return { namespace, spec: child(template, 'spec'), pod: null, name: told };
  }
  throw new Problem({
    code: 'no-pod',
    text: `${whole} has no pods in ${source.name}`,
    hint:
      selector === null
        ? 'It has no selector, so its endpoints cannot be found by label.'
        : `No pod has the labels ${selector}.`,
    remedy: 'Specify a pod or its workload: --from deploy/NAME',
  });
}

/** Returns a running pod that is not terminating, or any pod if there is none. */
function best(pods: readonly JsonObject[]): JsonObject | null {
  const leaving = (pod: JsonObject): boolean =>
    text(child(pod, 'metadata'), 'deletionTimestamp') !== '';
  const running = (pod: JsonObject): boolean => text(child(pod, 'status'), 'phase') === 'Running';
  return (
    pods.find((pod) => running(pod) && !leaving(pod)) ??
    pods.find((pod) => !leaving(pod)) ??
    pods[0] ??
    null
  );
}

/**
 * Returns `spec.selector` in the API's syntax. Services have pairs, while other kinds have matchLabels and
 * matchExpressions. Returns null if it selects nothing.
 */
function selectorOf(object: JsonObject): string | null {
  const selector = child(child(object, 'spec'), 'selector');
  const modern = 'matchLabels' in selector || 'matchExpressions' in selector;
  const pairs = modern
    ? textMap(selector, 'matchLabels')
    : textMap(child(object, 'spec'), 'selector');
  const terms = Object.entries(pairs).map(([key, value]) => `${key}=${value}`);
  for (const expression of children(selector, 'matchExpressions')) {
    const key = text(expression, 'key');
    const values = list(expression, 'values').join(',');
    const operator = text(expression, 'operator');
    if (operator === 'In' || operator === 'NotIn')
      terms.push(`${key} ${operator.toLowerCase()} (${values})`);
    else terms.push(operator === 'DoesNotExist' ? `!${key}` : key);
  }
  return terms.length === 0 ? null : terms.join(',');
}

async function notFound(
  source: PodSource,
  { of, name }: ResourceName,
  namespace: string | null,
): Promise<Problem> {
  const where = namespace === null ? '' : ` in namespace ${namespace}`;
  return new Problem({
    code: 'not-found',
    text: `no ${of.kind} "${name}"${where} in ${source.name}`,
    hint: namespace === null ? undefined : 'If it is in another namespace: --namespace NAME',
    remedy: source.isDirectory
      ? thereText(of, await source.names(of, null))
      : `kubectl get ${of.plural} -A lists them all.`,
  });
}

/** Maximum number of a directory's names to show. */
const THERE_MAX = 10;

function thereText({ kind }: ResourceName['of'], names: readonly string[]): string {
  if (names.length === 0) return `It has no ${kind}.`;
  const more = names.length > THERE_MAX ? ` and ${names.length - THERE_MAX} more` : '';
  return `Existing objects of that kind: ${names.slice(0, THERE_MAX).join(', ')}${more}.`;
}

/** Returns the labels of pods created from a template. */
export function templateLabels(template: JsonObject): Record<string, string> {
  return textMap(asObject(template['metadata']), 'labels');
}
