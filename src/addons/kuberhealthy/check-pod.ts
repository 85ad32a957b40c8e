/** Builds the pod for a run from the check's own specification and the fields that Kuberhealthy adds. */
import { asObject, child, list, text, type JsonObject } from '../../server/base/json-object.ts';
import { plainAddress } from '../../server/base/ip.ts';
import { containersOf, KINDS, type CheckObject } from './check-object.ts';

/** Settings of a run, passed to its pod. */
export interface PodTerms {
  readonly run: string;
  /** The pod's secret, which identifies its reports regardless of their source address. */
  readonly token: string;
  /** The reporting URL without the path. */
  readonly reportingUrl: string;
  /** The start of the run and its report's deadline, in milliseconds since 1970. */
  readonly begunAt: number;
  readonly deadline: number;
  /** Five characters, all valid in a label, that make the pod name unique. */
  readonly suffix: string;
}

/** The labels, by version, that mark a pod as a checker and identify its run. */
export const RUN_LABEL = { 2: 'kuberhealthy-run-id', 3: 'kh-run-uuid' } as const;
/** Labels that name the check, by version. */
const CHECK_LABEL = { 2: 'kuberhealthy-check-name', 3: 'healthcheck' } as const;

export const REPORT_PATH = { 2: '/externalCheckStatus', 3: '/check' } as const;

/** The maximum length of labels, and of pod names, which also serve as host names. */
const LABEL_MAX = 63;
/** Maximum length of an object name (RFC 1123). */
const NAME_MAX = 253;
/** One address per family. */
const ADDRESSES_MAX = 2;

/** Builds the pod, but leaves validation of its specification to the API server. */
export function podOf(check: CheckObject, terms: PodTerms): JsonObject {
  const { kind, namespace, name, uid } = check;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace,
      name: `${shortened(name, LABEL_MAX - 6)}-${terms.suffix}`,
      labels: { ...check.podLabels, ...labelsOf(check, terms) },
      annotations: { ...check.podAnnotations, ...annotationsOf(check, terms) },
      // Lets the garbage collector delete leftover objects together with the check.
      ownerReferences: [{ ...KINDS[kind], name, uid, controller: true, blockOwnerDeletion: true }],
    },
    spec: specOf(check, terms),
  };
}

function labelsOf({ version, name }: CheckObject, { run }: PodTerms): Record<string, string> {
  return {
    [RUN_LABEL[version]]: run,
    // Labels are limited to 63 characters, so the full name goes into the annotation.
    [CHECK_LABEL[version]]: shortened(name, LABEL_MAX),
    ...(version === 2 && { app: 'kuberhealthy-check' }),
  };
}

/** Truncates a name so that the result is still valid, ending with a letter or digit. */
function shortened(name: string, most: number): string {
  let end = Math.min(most, name.length);
  while (end > 0 && !/[a-z0-9]/.test(name[end - 1]!)) end--;
  return name.slice(0, end);
}

/** The annotation, by version, that carries the check's full name. */
const CHECK_ANNOTATION = {
  2: 'comcast.github.io/check-name',
  3: 'kuberhealthyCheckName',
} as const;

function annotationsOf({ version, name }: CheckObject, terms: PodTerms): Record<string, string> {
  const named = { [CHECK_ANNOTATION[version]]: name };
  if (version === 2) return named;
  return {
    ...named,
    createdBy: 'kuberhealthy',
    createdTime: new Date(terms.begunAt).toISOString(),
    [RUN_LABEL[3]]: terms.run,
  };
}

function specOf({ version, podSpec }: CheckObject, terms: PodTerms): JsonObject {
  const { run, token, reportingUrl, deadline } = terms;
  const variables: readonly JsonObject[] = [
    // All checkers post to this URL unchanged, so even old ones send the token.
    { name: 'KH_REPORTING_URL', value: `${reportingUrl}${REPORT_PATH[version]}?token=${token}` },
    { name: 'KH_RUN_UUID', value: run },
    {
      name: 'KH_POD_NAMESPACE',
      valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } },
    },
    { name: 'KH_CHECK_RUN_DEADLINE', value: String(Math.floor(deadline / 1000)) },
  ];
  const names = new Set(variables.map((variable) => variable['name']));
  const told = (container: JsonObject): JsonObject => ({
    ...container,
    env: [
      ...list(container, 'env').filter((each) => !names.has(asObject(each)['name'])),
      ...variables,
    ],
  });
  return {
    ...podSpec,
    // A restarted container would report the same run twice. Version 3 leaves the policy to the check.
    ...((version === 2 || text(podSpec, 'restartPolicy') === '') && { restartPolicy: 'Never' }),
    containers: containersOf(podSpec, 'containers').map(told),
    ...(Array.isArray(podSpec['initContainers']) && {
      initContainers: containersOf(podSpec, 'initContainers').map(told),
    }),
  };
}

/** The checker pod fields that are used here. */
export interface CheckerPod {
  readonly namespace: string;
  readonly name: string;
  readonly version: 2 | 3;
  readonly run: string;
  /** Name of its check. */
  readonly check: string;
  readonly phase: string;
  readonly node: string;
  /** Addresses that no other pod uses until this one ends. Empty for pods on the host network. */
  readonly addresses: readonly string[];
  /** The object that owns this pod. */
  readonly owner: string;
  /** The secret in its reporting URL, or `''` if there is none. */
  readonly token: string;
  /** Milliseconds since 1970. */
  readonly madeAt: number;
  /** True if the pod is being deleted but is still held by the kubelet or a finalizer. */
  readonly isGoing: boolean;
  /** Why the pod is not running, as text: `Pending: ImagePullBackOff (…)`. */
  readonly condition: string;
}

/**
 * Reads a checker pod.
 * @returns null if the pod does not belong to a check
 */
export function readCheckerPod(pod: JsonObject, version: 2 | 3): CheckerPod | null {
  const metadata = child(pod, 'metadata');
  const run = text(child(metadata, 'labels'), RUN_LABEL[version]);
  const check =
    text(child(metadata, 'annotations'), CHECK_ANNOTATION[version]) ||
    text(child(metadata, 'labels'), CHECK_LABEL[version]);
  if (run === '' || check === '') return null;
  const status = child(pod, 'status');
  const spec = child(pod, 'spec');
  const phase = text(status, 'phase');
  return {
    namespace: text(metadata, 'namespace'),
    name: text(metadata, 'name'),
    version,
    run,
    // Object names are never longer, but an annotation may be.
    check: check.slice(0, NAME_MAX),
    phase,
    node: text(spec, 'nodeName'),
    addresses:
      (phase === 'Running' || phase === 'Pending') && spec['hostNetwork'] !== true
        ? addressesOf(status)
        : [],
    owner: text(containersOf(metadata, 'ownerReferences')[0] ?? {}, 'uid'),
    token: tokenOf(spec),
    madeAt: Date.parse(text(metadata, 'creationTimestamp')) || 0,
    isGoing: text(metadata, 'deletionTimestamp') !== '',
    condition: conditionOf(status),
  };
}

function addressesOf(status: JsonObject): readonly string[] {
  const all = [
    text(status, 'podIP'),
    ...containersOf(status, 'podIPs').map((each) => text(each, 'ip')),
  ];
  return [...new Set(all)]
    .filter((address) => address !== '')
    .map(plainAddress)
    .slice(0, ADDRESSES_MAX);
}

const TOKEN = /[?&]token=([0-9a-f-]{32,64})$/;

function tokenOf(spec: JsonObject): string {
  for (const container of containersOf(spec, 'containers'))
    for (const variable of containersOf(container, 'env'))
      if (text(variable, 'name') === 'KH_REPORTING_URL')
        return TOKEN.exec(text(variable, 'value'))?.[1] ?? '';
  return '';
}

function conditionOf(status: JsonObject): string {
  const phase = text(status, 'phase') || 'Unknown';
  const states = [
    ...containersOf(status, 'initContainerStatuses'),
    ...containersOf(status, 'containerStatuses'),
  ]
    .map((each) => child(each, 'state'))
    .flatMap((state) => [child(state, 'waiting'), child(state, 'terminated')]);
  const scheduling = containersOf(status, 'conditions').filter(
    (each) => text(each, 'type') === 'PodScheduled' && text(each, 'status') === 'False',
  );
  const found = [...states, ...scheduling].find((each) => text(each, 'reason') !== '');
  if (found === undefined) return phase;
  const message = text(found, 'message').replace(/\s+/g, ' ').slice(0, 200);
  return `${phase}: ${text(found, 'reason').slice(0, 100)}${message === '' ? '' : ` (${message})`}`;
}
