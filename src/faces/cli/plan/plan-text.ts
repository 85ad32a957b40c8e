/** Prints the result of `ndots plan`. */
import type { BrokenName, ClientPlan } from '../../../tools/resolver/ndots-plan.ts';
import type { Io } from '../command.ts';
import { usage } from '../option-values.ts';
import { count } from '../../../server/base/counted.ts';
import { aligned, wrap } from '../page.ts';
import type { Workload, WorkloadPlan } from './plan-workloads.ts';

/** Width of the mark before a name: `  ✗ `. */
const MARK = 4;

/** Limit of names shown per category. */
const SHOWN = 10;

export function printPlans(
  found: readonly WorkloadPlan[],
  { columns }: Pick<Io, 'columns'>,
): string {
  return found.map((one) => onePlan(one, columns)).join('\n');
}

function onePlan(
  { workload, names, lookups, leftOut, plans, best, unknown }: WorkloadPlan,
  columns: number,
): string {
  const whose =
    workload.clients === 0 ? '' : `, ${count(workload.clients, 'address', 'addresses')}`;
  const more = leftOut === 0 ? '' : `; ${leftOut} less frequent names are left out`;
  const page = { columns: Math.max(40, columns) };
  const head = `${title(workload)}${whose}: ${count(names, 'name', 'names')}, ${count(lookups, 'lookup', 'lookups')}${more}`;
  const lines = [
    ...wrap(head, '', page),
    '',
    ...fittedTable(plans, page.columns),
    '',
    ...[...breaks(plans), ...dots(plans)].flatMap((line) =>
      line === '' ? [''] : wrap(line.slice(MARK), line.slice(0, MARK), page),
    ),
    ...wrap(verdict(plans, best, unknown), '→ ', page),
  ];
  return `${lines.join('\n')}\n`;
}

function title({ namespace, name }: Workload): string {
  return name === '' ? `clients in ${namespace}` : `${name} in ${namespace}`;
}

/** One row per client or, on narrow terminals, one column per client in as many tables as necessary. */
function fittedTable(plans: readonly ClientPlan[], columns: number): readonly string[] {
  const fits = (lines: readonly string[]): boolean => lines.every((line) => line.length <= columns);
  const rows = cells(plans);
  const wide = indented(rows);
  if (fits(wide)) return wide;
  const turned = (from: number, to: number): readonly string[] =>
    indented(rows[0]!.map((head, at) => [head, ...rows.slice(from, to).map((row) => row[at]!)]));
  const tables: string[] = [];
  for (let from = 1; from < rows.length;) {
    let to = from + 1;
    while (to < rows.length && fits(turned(from, to + 1))) to++;
    tables.push(...(from > 1 ? [''] : []), ...turned(from, to));
    from = to;
  }
  return tables;
}

/** Table cells, with `ndots` values in the header followed by one row per client. */
function cells(plans: readonly ClientPlan[]): readonly (readonly string[])[] {
  const values = plans[0]?.choices.map(({ ndots }) => ndots) ?? [];
  const head = values.map((ndots, index) => `ndots:${ndots}${index === 0 ? ' now' : ''}`);
  return [
    ['queries', ...head],
    ...plans.map(({ client, choices }) => [
      client,
      ...values.map((ndots) => {
        const one = choices.find((each) => each.ndots === ndots);
        if (one === undefined) return '-';
        const unknown = one.unknown.length > 0 ? ` ?${one.unknown.length}` : '';
        return `${one.queries}${one.broken.length > 0 ? ` ✗${one.broken.length}` : ''}${unknown}`;
      }),
    ]),
  ];
}

function indented(rows: readonly (readonly string[])[]): readonly string[] {
  return aligned(rows, { gap: '   ' }).map((line) => `  ${line}`);
}

/** Each name that breaks, and the highest `ndots` that breaks it. */
function breaks(plans: readonly ClientPlan[]): readonly string[] {
  const found = plans.flatMap(({ client, choices }) => {
    const seen = new Map<string, { ndots: number; broken: BrokenName }>();
    for (const { ndots, broken } of choices)
      for (const each of broken)
        if (!seen.has(each.name)) seen.set(each.name, { ndots, broken: each });
    return [...seen.values()].map((one) => ({ client, ...one }));
  });
  if (found.length === 0) return [];
  const lines = found
    .slice(0, SHOWN)
    .map(
      ({ client, ndots, broken: { name, becomes } }) =>
        `  ✗ ${name}: broken for ${client} from ndots:${ndots} on (${becomes || 'no address'})`,
    );
  const more = found.length > SHOWN ? [`    and ${found.length - SHOWN} more`] : [];
  return [...lines, ...more, ''];
}

/** The number of queries saved by trailing dots, for the client that benefits most. */
function dots(plans: readonly ClientPlan[]): readonly string[] {
  const saved = ({ dotted }: ClientPlan): number =>
    dotted.reduce((sum, { lookups, now, dotted: then }) => sum + lookups * (now - then), 0);
  const [most] = plans.toSorted((a, b) => saved(b) - saved(a));
  if (most === undefined || most.dotted.length === 0) return [];
  const { client, dotted } = most;
  const lines = dotted
    .slice(0, SHOWN)
    .map(
      ({ name, lookups, now, dotted: then }) =>
        `  · ${name}. with a final dot: ${then} instead of ${now} queries, ${count(lookups, 'lookup', 'lookups')} (${client})`,
    );
  const more = dotted.length > SHOWN ? [`    and ${dotted.length - SHOWN} more`] : [];
  return [...lines, ...more, ''];
}

function verdict(
  plans: readonly ClientPlan[],
  best: number | null,
  unknown: readonly string[],
): string {
  if (best === null && unknown.length > 0)
    return `It is unknown whether a lower ndots or a final dot breaks a name: ${count(unknown.length, 'name', 'names')} (${unknown.slice(0, 3).join(', ')}${unknown.length > 3 ? ' …' : ''}) may be names of Services. Give --cluster or --manifests to look them up.`;
  if (best === null) return 'No lower ndots saves queries without breaking a name.';
  const shares = Map.groupBy(plans, ({ choices }) => {
    const now = choices[0]!.queries;
    const saved = now - choices.find(({ ndots }) => ndots === best)!.queries;
    return `${saved} of ${now} queries (${Math.round((100 * saved) / Math.max(1, now))} %)`;
  });
  const told = [...shares].map(([share, alike]) => `${listed(alike)} ${share}`);
  const open =
    unknown.length === 0
      ? ''
      : ` What a lower one, or a final dot, does to ${unknown.slice(0, 3).join(', ')}${unknown.length > 3 ? ' …' : ''} is unknown without --cluster or --manifests.`;
  return `ndots:${best} breaks no name that was looked up, and saves ${told.join('; ')}.${open}`;
}

function listed(plans: readonly ClientPlan[]): string {
  const clients = plans.map(({ client }) => client);
  const last = clients.pop() ?? '';
  return clients.length === 0 ? last : `${clients.join(', ')} and ${last}`;
}

const kinds: Readonly<Record<string, readonly [string, string]>> = {
  deploy: ['apps/v1', 'Deployment'],
  sts: ['apps/v1', 'StatefulSet'],
  ds: ['apps/v1', 'DaemonSet'],
  rs: ['apps/v1', 'ReplicaSet'],
  rc: ['v1', 'ReplicationController'],
  cj: ['batch/v1', 'CronJob'],
};

/**
 * A workload's strategic merge patch for `kubectl patch --patch-file`, with comments about other workloads. It includes
 * the existing options, because a patch replaces all options in a dnsConfig.
 * @throws Problem for several workloads, because kubectl would apply the first patch to any of them
 */
export function printPatch(found: readonly WorkloadPlan[], program: string): string {
  const patched = found.filter(({ workload, best }) => best !== null && kindOf(workload) !== null);
  if (patched.length > 1)
    throw usage(
      `there are ${patched.length} patches, but kubectl applies one at a time`,
      patched
        .map(
          ({ workload: { namespace, name } }) =>
            `${program} plan … -o patch --workload ${name} -n ${namespace} > patch.yaml; kubectl -n ${namespace} patch ${name} --patch-file patch.yaml`,
        )
        .join('\n  '),
    );
  const comments = found.filter((one) => one !== patched[0]).map(commentOf);
  return [...comments, ...patched.map(patchOf)].join('');
}

function kindOf({ name }: Workload): readonly [apiVersion: string, kind: string] | null {
  return kinds[name.split('/')[0] ?? ''] ?? null;
}

function commentOf({ workload, best, unknown }: WorkloadPlan): string {
  if (best !== null)
    return `# ${title(workload)}: ndots:${best}, in its pod template; running pods cannot be changed.\n`;
  return unknown.length > 0
    ? `# ${title(workload)}: unknown without --cluster or --manifests, so nothing is proposed.\n`
    : `# ${title(workload)}: nothing to change.\n`;
}

function patchOf({ workload, best }: WorkloadPlan): string {
  const { namespace, name, dnsConfig } = workload;
  const [short = '', object = ''] = name.split('/');
  const [apiVersion, kind] = kindOf(workload)!;
  const others = (dnsConfig?.options ?? []).filter((option) => option.name !== 'ndots');
  const options = [...others, { name: 'ndots', value: String(best) }];
  const indent = short === 'cj' ? '          ' : '      ';
  const template =
    short === 'cj'
      ? '  jobTemplate:\n    spec:\n      template:\n        spec:'
      : '  template:\n    spec:';
  const lines = options.flatMap((option) => [
    `${indent}    - name: ${JSON.stringify(option.name)}`,
    ...(option.value === undefined
      ? []
      : [`${indent}      value: ${JSON.stringify(option.value)}`]),
  ]);
  return [
    `# kubectl -n ${namespace} patch ${name} --patch-file FILE`,
    `apiVersion: ${apiVersion}`,
    `kind: ${kind}`,
    'metadata:',
    `  name: ${object}`,
    `  namespace: ${namespace}`,
    'spec:',
    template,
    `${indent}dnsConfig:`,
    `${indent}  options:`,
    ...lines,
    '',
  ].join('\n');
}
