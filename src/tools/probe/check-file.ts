/** Parses a YAML check file into checks that can be run. Errors are reported with their positions. */
import { isObject, type JsonObject } from '../../server/base/json-object.ts';
import { Problem, Problems, didYouMean } from '../../server/base/problem.ts';
import { parseYaml, type DocumentPath } from '../../server/kube/manifests/yaml-document.ts';
import {
  anything,
  mapping,
  optional,
  YamlReading,
  required,
  simple,
  text,
  time,
  whole,
  type YamlFields,
  type FieldsOf,
} from '../../server/kube/manifests/yaml-shape.ts';
import type { CheckKind, RunCheck } from './check.ts';
import { checkKinds } from './kinds.ts';
import type { ProbeServer } from './network.ts';
import { domainName, serverAddress, several } from './parameters.ts';

export interface PlannedCheck {
  /** Derived from the kind and the title; unique. */
  readonly id: string;
  readonly kind: CheckKind;
  readonly title: string;
  /** Replies slower than this many milliseconds result in a warning. Null for no limit. */
  readonly slowMs: number | null;
  /** Interval in `serve`. */
  readonly everyMs: number;
  /** The fraction of rounds that should be good, for example 0.999. */
  readonly objective: number;
  readonly run: RunCheck;
}

export interface CheckPlan {
  /** The listed addresses, or null to look them up in the cluster. */
  readonly vip: readonly ProbeServer[] | null;
  readonly replicas: readonly ProbeServer[] | null;
  /** `namespace/name` of the service whose replicas are queried, or null to use those listed. */
  readonly service: string | null;
  readonly timeoutMs: number;
  readonly tries: number;
  readonly clusterDomain: string;
  readonly search: readonly string[];
  readonly ndots: number;
  readonly checks: readonly PlannedCheck[];
}

const serviceName = simple(
  'NAMESPACE/NAME',
  'NAMESPACE/NAME of a service, such as kube-system/kube-dns',
  '',
  (value) =>
    typeof value === 'string' && /^[a-z0-9-]{1,63}\/[a-z0-9-]{1,63}$/.test(value) ? value : null,
);

const objective = simple(
  'PERCENT',
  'required percentage of good rounds, such as 99.9',
  0,
  (value) => (Number(value) > 0 && Number(value) < 100 ? Number(value) / 100 : null),
);

/** Settings for the whole file. Names are absolute, and times are in milliseconds. */
export interface FileValues {
  readonly vip: readonly ProbeServer[] | null;
  readonly replicas: readonly ProbeServer[] | null;
  readonly service: string | null;
  readonly timeout: number;
  readonly tries: number;
  readonly every: number;
  readonly objective: number;
  readonly clusterDomain: string;
  readonly namespace: string;
  readonly search: readonly string[] | null;
  readonly ndots: number;
}

/** Settings that every check accepts. Null to use the setting for the whole file. */
export interface CommonValues {
  readonly title: string;
  readonly slow: number | null;
  readonly every: number | null;
  readonly objective: number | null;
}

export const fileParameters: FieldsOf<FileValues> = {
  vip: optional(
    several(serverAddress),
    null,
    'address of the DNS service (default: the address of `service`, or the servers in /etc/resolv.conf)',
  ),
  replicas: optional(
    several(serverAddress),
    null,
    'addresses of its replicas, if they are not looked up through `service`',
  ),
  service: optional(serviceName, null, 'the DNS Service; its EndpointSlices list the replicas'),
  timeout: optional(time(1, 60_000), 1000, 'timeout of each try'),
  tries: optional(whole(1, 10), 2, 'attempts before a query counts as failed'),
  every: optional(time(100, 86_400_000), 30_000, 'how often `serve` runs each check'),
  objective: optional(objective, 0.999, 'required share of good rounds'),
  clusterDomain: optional(domainName, 'cluster.local.', 'domain of the cluster'),
  namespace: optional(text, 'default', 'namespace of the search path'),
  search: optional(several(domainName), null, 'the search path (default: the namespace’s)'),
  ndots: optional(whole(0, 15), 5, 'as resolv.conf has it'),
};

export const commonParameters: FieldsOf<CommonValues> = {
  title: optional(text, '', 'title of the check (default: the kind and the first name)'),
  slow: optional(time(1, 60_000), null, 'a longer duration causes a warning'),
  every: optional(time(100, 86_400_000), null, 'how often `serve` runs it'),
  objective: optional(objective, null, 'required share of good rounds'),
};

/** The maximum number of checks per file. Larger sets can be split into several files. */
const CHECKS_MAX = 1000;

/**
 * Parses a check file.
 * @throws Problems with every error found, or the YAML parser's Problem
 */
export function readCheckFile(content: string, file: string): CheckPlan {
  const { documents, problems } = parseYaml(content, file);
  if (problems.length > 0) throw new Problems(problems);
  const [document] = documents;
  const value = document?.value;
  if (documents.length !== 1 || document === undefined || !isObject(value))
    throw new Problem({
      ...kindOfProblem,
      text: `${file} contains no checks`,
      place: { file, line: 1, column: 1 },
      hint: 'It needs a list: checks:',
    });
  const reading = new YamlReading();
  const { checks: listed, ...values } = mapping(wholeFile, 'the file').read(value, [], reading);
  // Errors in the checks are reported even if the settings are wrong.
  const base = reading.mistakes.length === 0 ? values : fallbacks<FileValues>(fileParameters);
  const found = readChecks(listed, base, reading);
  if (reading.mistakes.length > 0) throw new Problems(reading.problems(document, kindOfProblem));
  return planOf(base, found);
}

const wholeFile = { ...fileParameters, checks: optional(anything, null, 'what is checked') };

function readChecks(
  listed: unknown,
  base: FileValues,
  reading: YamlReading,
): readonly PlannedCheck[] {
  const path = ['checks'];
  if (!Array.isArray(listed) || listed.length === 0) {
    reading.tell(path, 'there are no checks', 'Example: checks: [{ check: replica-answers }]');
    return [];
  }
  if (listed.length > CHECKS_MAX) {
    reading.tell(path, `${listed.length} checks; at most ${CHECKS_MAX}`);
    return [];
  }
  const found: PlannedCheck[] = [];
  for (const [index, entry] of (listed as readonly unknown[]).entries()) {
    const check = readCheck(reading, entry, [...path, index], base);
    if (check === null) continue;
    if (found.some(({ id }) => id === check.id))
      reading.tell(
        [...path, index],
        `two checks have the ID ${check.id}`,
        'Give one of them a title.',
      );
    found.push(check);
  }
  return found;
}

/** Plans checks without a file, using the default parameters for each kind. */
export function planChecks(
  given: Partial<FileValues>,
  checks: readonly { readonly kind: string; readonly values: Readonly<Record<string, unknown>> }[],
): CheckPlan {
  const base = { ...fallbacks<FileValues>(fileParameters), ...given };
  return planOf(
    base,
    checks.map(({ kind: name, values }) => {
      const kind = checkKinds.find((each) => each.name === name)!;
      return plannedCheck(
        kind,
        { ...inDomain(fallbacks(kind.parameters), base.clusterDomain), ...values },
        fallbacks<CommonValues>(commonParameters),
        base,
      );
    }),
  );
}

function planOf(base: FileValues, checks: readonly PlannedCheck[]): CheckPlan {
  const { vip, replicas, service, tries, ndots, namespace } = base;
  const clusterDomain = base.clusterDomain.replace(/\.$/, '');
  const usual = [`${namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain];
  const search = base.search?.map((suffix) => suffix.replace(/\.$/, '')) ?? usual;
  return {
    vip,
    replicas,
    service,
    timeoutMs: base.timeout,
    tries,
    clusterDomain,
    search,
    ndots,
    checks,
  };
}

/** @returns null if the check has an error */
function readCheck(
  reading: YamlReading,
  entry: unknown,
  path: DocumentPath,
  base: FileValues,
): PlannedCheck | null {
  if (!isObject(entry)) {
    reading.tell(path, 'a check is a mapping', 'Example: - check: replica-answers');
    return null;
  }
  const kind = readKind(entry['check'], [...path, 'check'], reading);
  if (kind === null) return null;
  const before = reading.mistakes.length;
  const fields = { check: required(anything, 'its kind'), ...kind.parameters, ...commonParameters };
  const { title, slow, every, objective, ...values } = mapping(fields, 'a check').read(
    entry,
    path,
    reading,
  );
  if (reading.mistakes.length > before) return null;
  const moved = inDomain(values, base.clusterDomain, entry);
  return plannedCheck(kind, moved, { title, slow, every, objective }, base);
}

function readKind(given: unknown, path: DocumentPath, reading: YamlReading): CheckKind | null {
  const kind = checkKinds.find(({ name }) => name === given);
  if (kind !== undefined) return kind;
  const names = checkKinds.map(({ name }) => name);
  const called = typeof given === 'string' ? given : JSON.stringify(given ?? '');
  const text = given === undefined ? 'what is checked?' : `there is no check "${called}"`;
  reading.tell(path, text, didYouMean(called, names, `Known: ${names.join(', ')}`));
  return null;
}

function plannedCheck(
  kind: CheckKind,
  values: Readonly<Record<string, unknown>>,
  common: CommonValues,
  base: FileValues,
): PlannedCheck {
  const first = [values['name'], values['names'], values['zone']]
    .flat()
    .find((each): each is string => typeof each === 'string');
  const title = common.title || (first ?? '').replace(/(?<=.)\.$/, '');
  return {
    id: `${kind.name} ${title}`,
    kind,
    title,
    slowMs: common.slow,
    everyMs: common.every ?? base.every,
    objective: common.objective ?? base.objective,
    run: kind.prepare(values),
  };
}

/**
 * Adapts default parameters, which are meant for `cluster.local`, to another cluster domain. Explicit parameters are
 * left unchanged.
 */
function inDomain(
  values: Readonly<Record<string, unknown>>,
  clusterDomain: string,
  given: JsonObject = {},
): Readonly<Record<string, unknown>> {
  const move = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(move)
      : typeof value === 'string' && value.endsWith('.svc.cluster.local.')
        ? value.replace(/cluster\.local\.$/, clusterDomain)
        : value;
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key,
      Object.hasOwn(given, key) ? value : move(value),
    ]),
  );
}

function fallbacks<V>(fields: YamlFields): V {
  return Object.fromEntries(
    Object.entries(fields).map(([key, { fallback }]) => [key, fallback]),
  ) as V;
}

const kindOfProblem = {
  code: 'bad-check-file',
  remedy: 'ndots check list shows the settings of each check.',
};
