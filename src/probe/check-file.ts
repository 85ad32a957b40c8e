/** The file of checks: YAML to checks that can be run. Whatever a person may have mistyped is told with its place. */
import { parseAddress } from '../base/ip.ts';
import { nearest, Problem, Problems, type Place } from '../base/problem.ts';
import { isObject, type JsonObject } from '../kube/api/json-object.ts';
import { parseYaml, type YamlDocument } from '../kube/manifests/yaml-document.ts';
import type { CheckKind, RunCheck } from './check.ts';
import { checkKinds } from './kinds.ts';
import type { ProbeServer } from './network.ts';
import {
  anyText,
  BadValue,
  domainName,
  listOf,
  optional,
  time,
  whole,
  type Parameter,
  type ParameterKind,
  type ParameterTable,
} from './parameters.ts';

/** One check of a file. */
export interface PlannedCheck {
  /** Of its kind and title; no two are the same. */
  readonly id: string;
  readonly kind: CheckKind;
  readonly title: string;
  /** Slower is a warning, milliseconds; null: any time will do. */
  readonly slowMs: number | null;
  /** How often it is run by `serve`. */
  readonly everyMs: number;
  /** The share of rounds that are to be good: 0.999. */
  readonly objective: number;
  readonly run: RunCheck;
}

/** What a file says. */
export interface CheckPlan {
  /** Listed addresses; null: they are found out. */
  readonly vip: readonly ProbeServer[] | null;
  readonly replicas: readonly ProbeServer[] | null;
  /** `namespace/name` of the service whose replicas are asked; null: those listed. */
  readonly service: string | null;
  readonly timeoutMs: number;
  readonly tries: number;
  readonly clusterDomain: string;
  readonly search: readonly string[];
  readonly ndots: number;
  readonly checks: readonly PlannedCheck[];
}

/** An address with or without a port. */
export const serverAddress: ParameterKind<ProbeServer> = {
  placeholder: 'IP[:PORT]',
  read(value: unknown): ProbeServer {
    const found = typeof value === 'string' ? readServer(value) : null;
    if (found === null)
      throw new BadValue(`an IP address, or one with a port, not "${String(value)}"`);
    return found;
  },
};

function readServer(text: string): ProbeServer | null {
  if (parseAddress(text) !== null) return { host: text, port: 53 };
  const [, host = '', digits = ''] = /^\[?([^\]]+)\]?:(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (parseAddress(host) === null || port < 1 || port > 65_535) return null;
  return { host, port };
}

const serviceName = {
  placeholder: 'NAMESPACE/NAME',
  read(value: unknown): string {
    if (typeof value === 'string' && /^[a-z0-9-]{1,63}\/[a-z0-9-]{1,63}$/.test(value)) return value;
    throw new BadValue('NAMESPACE/NAME of a service, such as kube-system/kube-dns');
  },
};

const objective = {
  placeholder: 'PERCENT',
  read(value: unknown): number {
    const percent = Number(value);
    if (percent > 0 && percent < 100) return percent / 100;
    throw new BadValue('percent of rounds that are to be good, such as 99.9');
  },
};

/** What a file says besides its checks; names are absolute, times milliseconds. */
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

/** What every check says; null: as the file does. */
export interface CommonValues {
  readonly title: string;
  readonly slow: number | null;
  readonly every: number | null;
  readonly objective: number | null;
}

/** Parameters that give these values. */
export type Typed<V> = { readonly [K in keyof V]: Parameter<V[K]> };

/** What a file may say besides its checks. */
export const fileParameters: Typed<FileValues> = {
  vip: optional<readonly ProbeServer[] | null>(
    listOf(serverAddress),
    null,
    'address of the DNS service (that of `service`, else the servers of /etc/resolv.conf)',
  ),
  replicas: optional<readonly ProbeServer[] | null>(
    listOf(serverAddress),
    null,
    'addresses of its replicas, if they are not to be found by `service`',
  ),
  service: optional<string | null>(
    serviceName,
    null,
    'the DNS service: its EndpointSlices say where the replicas are',
  ),
  timeout: optional(time(1, 60_000), 1000, 'wait for each try'),
  tries: optional(whole(1, 10), 2, 'tries of a query before it counts as failed'),
  every: optional(time(100, 86_400_000), 30_000, 'how often `serve` runs each check'),
  objective: optional(objective, 0.999, 'share of rounds that are to be good'),
  clusterDomain: optional(domainName, 'cluster.local.', 'domain of the cluster'),
  namespace: optional(anyText, 'default', 'whose search path is walked'),
  search: optional<readonly string[] | null>(
    listOf(domainName),
    null,
    'the search path, if not that of the namespace',
  ),
  ndots: optional(whole(0, 15), 5, 'as resolv.conf has it'),
};

/** What every check may say. */
export const commonParameters: Typed<CommonValues> = {
  title: optional(anyText, '', 'what it is called; the kind and the first name without one'),
  slow: optional<number | null>(time(1, 60_000), null, 'slower is a warning'),
  every: optional<number | null>(time(100, 86_400_000), null, 'how often `serve` runs it'),
  objective: optional<number | null>(objective, null, 'share of rounds that are to be good'),
};

/** More checks are several files. */
const CHECKS_MAX = 1000;

/** Reads a file of checks. @throws Problems with all that is wrong, or the problem of the YAML */
export function readCheckFile(content: string, file: string): CheckPlan {
  const { documents, problems } = parseYaml(content, file);
  if (problems.length > 0) throw new Problems(problems);
  const [document] = documents;
  const value = document?.value;
  if (documents.length !== 1 || document === undefined || !isObject(value))
    throw wrong(
      `${file} holds no checks`,
      { file, line: 1, column: 1 },
      'It needs a list: checks:',
    );
  const reading = new Reading(document);
  const { checks: listed, ...rest } = value;
  const read = reading.values(rest, fileParameters, [], ['checks']);
  // Where that is wrong, what is wrong with the checks is told all the same.
  const base = read ?? (fallbacks(fileParameters) as unknown as FileValues);
  const found: PlannedCheck[] = [];
  if (!Array.isArray(listed) || listed.length === 0)
    reading.tell('there are no checks', ['checks'], 'As in: checks: [{ check: replica-answers }]');
  else if (listed.length > CHECKS_MAX)
    reading.tell(`${listed.length} checks; at most ${CHECKS_MAX}`, ['checks']);
  else
    for (const [index, entry] of (listed as readonly unknown[]).entries()) {
      const check = readCheck(reading, entry, ['checks', index], base);
      if (check === null) continue;
      if (found.some(({ id }) => id === check.id))
        reading.tell(
          `two checks are called ${check.id}`,
          ['checks', index],
          'Give one of them a title.',
        );
      found.push(check);
    }
  if (reading.problems.length > 0) throw new Problems(reading.problems);
  return planOf(base, found);
}

/** Checks without a file, each with what stands for its parameters. */
export function planChecks(
  given: Partial<FileValues>,
  checks: readonly { readonly kind: string; readonly values: Readonly<Record<string, unknown>> }[],
): CheckPlan {
  const base = { ...fallbacks(fileParameters), ...given } as unknown as FileValues;
  return planOf(
    base,
    checks.map(({ kind: name, values }) => {
      const kind = checkKinds.find((each) => each.name === name)!;
      return plannedCheck(
        kind,
        { ...inDomain(fallbacks(kind.parameters), base.clusterDomain), ...values },
        fallbacks(commonParameters) as unknown as CommonValues,
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

function readCheck(
  reading: Reading,
  entry: unknown,
  path: Path,
  base: FileValues,
): PlannedCheck | null {
  if (!isObject(entry)) {
    reading.tell('a check is a mapping', path, 'As in: - check: replica-answers');
    return null;
  }
  const { check: name, ...rest } = entry;
  const called = typeof name === 'string' ? name : JSON.stringify(name ?? '');
  const kind = checkKinds.find((each) => each.name === name);
  if (kind === undefined) {
    const meant = nearest(
      called,
      checkKinds.map((each) => each.name),
    );
    reading.tell(
      name === undefined ? 'what is checked?' : `there is no check "${called}"`,
      [...path, 'check'],
      meant === null
        ? `Known: ${checkKinds.map((each) => each.name).join(', ')}`
        : `Did you mean ${meant}?`,
    );
    return null;
  }
  const own: Record<string, unknown> = {};
  const shared: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(rest))
    (Object.hasOwn(commonParameters, key) ? shared : own)[key] = value;
  const common = reading.values(shared, commonParameters, path, []);
  const values = reading.values<Record<string, unknown>>(own, kind.parameters, path, [
    'check',
    ...Object.keys(commonParameters),
  ]);
  if (common === null || values === null) return null;
  const moved = inDomain(values, base.clusterDomain, own);
  return plannedCheck(kind, moved, common, base);
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

/** What stands for parameters is of `cluster.local`; where that is called otherwise, so are they. What was given stays. */
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

function fallbacks(table: ParameterTable): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).map(([key, { fallback }]) => [key, fallback]));
}

type Path = readonly (string | number)[];

/** Reads the parts of one document and collects what is wrong with them. */
class Reading {
  readonly problems: Problem[] = [];
  readonly #document: YamlDocument;

  constructor(document: YamlDocument) {
    this.#document = document;
  }

  tell(text: string, path: Path, hint?: string): void {
    this.problems.push(wrong(text, this.#document.place(path), hint));
  }

  /** @param others keys that are somebody else's, for what was probably meant. Null: something is wrong */
  values<V>(given: JsonObject, table: Typed<V>, path: Path, others: readonly string[]): V | null {
    const before = this.problems.length;
    const keys = Object.keys(table);
    for (const key of Object.keys(given)) {
      if (keys.includes(key)) continue;
      const meant = nearest(key, [...keys, ...others]);
      const hint =
        meant === null ? `Known: ${[...keys, ...others].join(', ')}` : `Did you mean ${meant}?`;
      this.tell(`unknown key "${key}"`, [...path, key], hint);
    }
    const values = Object.entries<Parameter<unknown>>(table).map(([key, parameter]) => [
      key,
      this.#value(given, key, parameter, path),
    ]);
    return this.problems.length > before ? null : (Object.fromEntries(values) as V);
  }

  #value(given: JsonObject, key: string, parameter: Parameter<unknown>, path: Path): unknown {
    const value = given[key];
    if (value === undefined || value === null) {
      if (parameter.fallback === undefined)
        this.tell(
          `"${key}" is missing`,
          path,
          `${key}: ${parameter.placeholder} (${parameter.help})`,
        );
      return parameter.fallback;
    }
    try {
      return parameter.read(value);
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      this.tell(`"${key}" takes ${error.message}`, [...path, key]);
      return parameter.fallback;
    }
  }
}

function wrong(text: string, place: Place, hint?: string): Problem {
  return new Problem({
    code: 'bad-check-file',
    text,
    place,
    hint,
    remedy: 'ndots check list shows what each check takes.',
  });
}
