/** The command line of `ndots top`. */
import { filterOf, type GivenFilter } from '../../../tools/capture/filter.ts';
import { sortKeys, viewNames, type ViewName } from '../../../tools/watch/view.ts';
import { nearest } from '../../../server/base/problem.ts';
import { filtersOf, trafficOptions, withoutProcesses } from '../capture/traffic-options.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { clustersOptionsOf, type ClustersOptions } from '../live/live-clusters.ts';
import { contextsOption, serverOptions, speedOption, windowOptions } from '../live/live-options.ts';
import { flag, group, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, duration, integer, text, usage } from '../option-values.ts';

export interface TopOptions extends ClustersOptions, ColourOptions {
  readonly filters: readonly GivenFilter[];
  readonly view: ViewName;
  /** Null: the view's default. */
  readonly sort: string | null;
  readonly reversed: boolean;
  readonly most: number | null;
  readonly forMs: number | null;
  readonly once: boolean;
  readonly output: 'text' | 'json';
}

const table = {
  ...trafficOptions,
  ...group('Pod names', { ...contextsOption }),
  ...group('Servers and replicas', { ...serverOptions }),
  ...group('View', {
    view: one('--view', choice('VIEW', viewNames), `first view: ${viewNames.join(', ')}`),
    sort: one(
      '--sort',
      text('COLUMN', { words: [...new Set(Object.values(sortKeys).flat())] }),
      'sort by this column',
    ),
    reverse: flag('--reverse', 'reverse the order'),
    most: one('--rows', integer('N', 1, 100_000), 'number of rows with --once and -o json (200)'),
  }),
  ...group('Limits', {
    ...speedOption,
    for: one('--for', duration(1, 86_400_000 * 7), 'stop after this time, such as 30s or 5m'),
    ...windowOptions,
  }),
  ...group('Output', {
    once: flag('--once', 'print the view once: at the end of the file, or after 10s live'),
    output: one(
      '-o, --output',
      choice('FORMAT', ['text', 'json']),
      'text, or json with one line per second',
    ),
    ...colourOptions,
  }),
};

/** Milliseconds to watch live traffic before printing once. */
const ONCE_MS = 10_000;

export const topUsage: Usage = {
  synopsis: '[-i INTERFACE | FILE…|-]',
  examples: [
    ['', 'watch this machine (same as -i any)'],
    [
      '--server 10.244.0.5 --server 10.244.1.7',
      'watch two ndots servers with the console directive',
    ],
    ['--replicas --server-token FILE', 'watch all of the cluster’s DNS pods that have it'],
    ['--pid 4711', 'watch the pod of this process'],
    ['node7.pcap --speed 10', 'replay a capture ten times as fast'],
    ['node7.pcap --once --view findings', 'print one view, for scripts'],
  ],
  style: 'gnu',
  options: withoutProcesses(table),
  notes: [
    'Keys: 1 to 6 choose the view, / filters, s sorts, Enter shows details, p pauses, t traces the name as that client, y shows the equivalent command, ? lists all keys, q quits.',
    'Files: as for ndots capture; - is standard input: kubectl logs -f deploy/coredns -n kube-system --timestamps | ndots top -',
    'Exit codes: 0 shown, 2 could not be read, 3 usage error. More: docs/top.md',
  ],
  words: { files: true },
};

/** @throws Problem (`usage`) */
export function parseTopOptions(given: readonly string[]): TopOptions {
  const { values, words } = parseOptions(table, given);
  const clusters = clustersOptionsOf(values, words);
  const { filters } = filtersOf({ ...values, ...clusters });
  // Reports invalid filter values before reading any input.
  filterOf(filters, new Map());
  const live = clusters.files.length === 0;
  if (live && values.speed !== null)
    throw usage('--speed needs a file', 'A live capture always runs at normal speed.');
  const view = values.view ?? 'now';
  const keys: readonly string[] = sortKeys[view];
  if (values.sort !== null && !keys.includes(values.sort)) {
    const meant = nearest(values.sort, keys);
    throw usage(
      keys.length === 0
        ? `the ${view} view cannot be sorted; choose another one with --view`
        : `the ${view} view cannot be sorted by "${values.sort}"${meant === null ? '' : `: did you mean ${meant}?`}`,
      keys.length === 0 ? undefined : `Columns: ${keys.join(', ')}`,
    );
  }
  return {
    ...values,
    ...clusters,
    filters,
    view,
    reversed: values.reverse,
    speed: values.speed ?? (values.once ? Infinity : 1),
    forMs: values.for ?? (values.once && live ? ONCE_MS : null),
    output: values.output ?? 'text',
  };
}
