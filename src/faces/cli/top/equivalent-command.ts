/** The command line that shows what a page of the live view shows. */
import { filterArguments } from '../../../tools/capture/filter-line.ts';
import type { GivenFilter } from '../../../tools/capture/filter.ts';
import type { ViewName } from '../../../tools/watch/view.ts';
import type { TrafficSources } from '../capture/traffic-options.ts';
import type { ClusterOptions } from '../cluster-options.ts';
import { shellWord } from '../shell-word.ts';
import type { TopItem } from './pages/top-page.ts';

/** The page on the screen. */
export interface ShownPage {
  readonly view: ViewName;
  readonly filters: readonly GivenFilter[];
  /** The row whose details are open; null: the list is shown. */
  readonly item: TopItem | null;
}

/** The sources of traffic and names in the options of a live verb. */
export type CommandSource = TrafficSources &
  ClusterOptions & { readonly manifests: string | null; readonly cluster: boolean };

/** Words of a command line, without the name of the program. */
export function equivalentWords(shown: ShownPage, options: CommandSource): readonly string[] {
  const { view, item } = shown;
  const filters = filterArguments([...shown.filters, ...(item?.lookups ?? [])]);
  const source = sourceWords(options);
  const names = nameWords(options);
  if (item !== null && item.code !== null) {
    // doctor has no way to listen for dnstap.
    return options.dnstap === null
      ? ['doctor', ...source, '--only', item.code, ...names]
      : ['doctor', '--explain', item.code];
  }
  if (item !== null && item.lookups !== null)
    return ['capture', ...source, '-o', 'flow', ...filters, ...names];
  switch (view) {
    case 'lookups':
      return ['capture', ...source, '-o', 'flow', ...filters, ...names];
    case 'clients':
      return ['capture', ...source, '-o', 'clients', ...filters, ...names];
    case 'findings':
      if (options.dnstap === null) return ['doctor', ...source, ...names];
  }
  return ['top', ...source, '--once', '--view', view, ...filters, ...names];
}

/** The source of the traffic, as options of every verb that reads it. */
function sourceWords({ files, device, netns, dnstap, ports }: CommandSource): readonly string[] {
  return [
    ...files,
    ...(device === null ? [] : ['-i', device]),
    ...(netns === null ? [] : ['--netns', netns]),
    ...(dnstap === null ? [] : ['--dnstap', dnstap]),
    ...(ports === null ? [] : ['--port', ports.join(',')]),
  ];
}

/** The source of names of addresses, as options. */
export function nameWords(options: CommandSource): readonly string[] {
  const { manifests, cluster, kubeconfig, context, as, asGroup } = options;
  const given = [
    ...(kubeconfig === null ? [] : ['--kubeconfig', kubeconfig]),
    ...(context === null ? [] : ['--context', context]),
    ...(as === null ? [] : ['--as', as]),
    ...asGroup.flatMap((group) => ['--as-group', group]),
  ];
  if (manifests !== null) return ['--manifests', manifests];
  return cluster && given.length === 0 ? ['--cluster'] : given;
}

/** The words as a person would type them into a shell. */
export function printCommand(program: string, words: readonly string[]): string {
  return [program, ...words.map(shellWord)].join(' ');
}
