/** Handles admission reviews (admission.k8s.io/v1): reads a pod and returns a JSON patch (RFC 6902). */
import {
  asObject,
  child,
  isObject,
  list,
  text,
  textMap,
  type JsonObject,
} from '../../server/base/json-object.ts';
import { adviseDns, annotations, type AdviceSources, type DnsAdvice } from './dns-advice.ts';

/** Thrown for malformed reviews, to which the API server then applies the failure policy. */
export class BadReview extends Error {}

interface PatchStep {
  readonly op: 'add';
  readonly path: string;
  readonly value: unknown;
}

export interface ReviewedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly pod: JsonObject;
}

/**
 * Parses a review.
 * @throws BadReview
 */
export function readReview(body: string): ReviewedPod {
  let review: unknown;
  try {
    review = JSON.parse(body);
  } catch (error) {
    throw new BadReview(`the review is not JSON: ${(error as Error).message}`, { cause: error });
  }
  if (!isObject(review) || text(review, 'kind') !== 'AdmissionReview')
    throw new BadReview('expected an AdmissionReview');
  if (text(review, 'apiVersion') !== 'admission.k8s.io/v1')
    throw new BadReview(
      `expected admission.k8s.io/v1, not "${text(review, 'apiVersion').slice(0, 64)}"`,
    );
  const request = child(review, 'request');
  const uid = text(request, 'uid');
  if (uid === '') throw new BadReview('the review has no uid');
  return { uid, namespace: text(request, 'namespace'), pod: child(request, 'object') };
}

/** `advise` only writes an annotation; `enforce` changes the dnsConfig. */
export type Mode = 'advise' | 'enforce';

/** Builds the reply, which always admits the pod, and returns it together with the source of the change. */
export function reviewPod(
  { uid, pod }: ReviewedPod,
  sources: AdviceSources,
  mode: Mode,
): { readonly advice: DnsAdvice; readonly body: string } {
  const advice =
    text(pod, 'kind') === 'Pod' || text(pod, 'kind') === '' ? adviseDns(pod, sources) : none;
  const steps = patchOf(pod, advice, mode);
  const response = {
    uid,
    allowed: true,
    ...(advice.mistakes.length > 0 && {
      warnings: advice.mistakes.map((text) => `ndots: ${text}`),
    }),
    ...(steps.length > 0 && {
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(steps)).toString('base64'),
    }),
  };
  const body = JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response,
  });
  return { advice, body };
}

const none: DnsAdvice = { options: [], because: '', mistakes: [] };

/** Builds the patch, which never overwrites existing values. In `advise` mode it only adds the annotation. */
function patchOf(pod: JsonObject, advice: DnsAdvice, mode: Mode): readonly PatchStep[] {
  if (advice.options.length === 0) return [];
  const steps: PatchStep[] = [];
  if (mode === 'enforce') {
    const spec = child(pod, 'spec');
    const config = asObject(spec['dnsConfig']);
    if (!isObject(spec['dnsConfig']))
      steps.push(add('/spec/dnsConfig', { options: advice.options }));
    else if (list(config, 'options').length === 0)
      steps.push(add('/spec/dnsConfig/options', advice.options));
    else for (const option of advice.options) steps.push(add('/spec/dnsConfig/options/-', option));
  }
  const metadata = child(pod, 'metadata');
  const told = printAdvice(advice, mode);
  if (!isObject(metadata['annotations']))
    steps.push(add('/metadata/annotations', { [annotations.advice]: told }));
  else if (textMap(metadata, 'annotations')[annotations.advice] !== told)
    steps.push(add(`/metadata/annotations/${annotations.advice.replace('/', '~1')}`, told));
  return steps;
}

function add(path: string, value: unknown): PatchStep {
  return { op: 'add', path, value };
}

/** `set ndots:2 (namespace shop)`. */
function printAdvice({ options, because }: DnsAdvice, mode: Mode): string {
  const words = options.map(({ name, value }) => (value === undefined ? name : `${name}:${value}`));
  return `${mode === 'enforce' ? 'set' : 'would set'} ${words.join(',')} (${because})`;
}
