/** Builds the command line that prints what the live view's current page shows. */
import { filterArguments } from '../../../tools/capture/filter-line.ts';
import type { GivenFilter } from '../../../tools/capture/filter.ts';
import type { ViewName } from '../../../tools/watch/view.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import type { ClusterOptions } from '../cluster-options.ts';
import type { LiveSources } from '../live/live-options.ts';
import { shellWord } from '../shell-word.ts';
import type { TopItem } from './pages/top-page.ts';

export interface ShownPage {
  readonly view: ViewName;
  readonly filters: readonly GivenFilter[];
  /** The row with open details, or null if the list is shown. */
  readonly item: TopItem | null;
}

/** A live command's options for selecting traffic and the source of names. */
export type CommandSource = LiveSources &
  ClusterOptions & { readonly manifests: string | null; readonly cluster: boolean };

/** The words on the command line, without the program name. */
export function equivalentWords(shown: ShownPage, options: CommandSource): readonly string[] {
  const { view, item } = shown;
  const filters = filterArguments([...shown.filters, ...(item?.lookups ?? [])]);
  const source = sourceWords(options);
  const names = nameWords(options);
  // capture cannot read from the console directive, and doctor cannot listen for dnstap either.
  const isServed = options.servers.length > 0 || options.replicas !== null;
  const forDoctor = options.dnstap === null && !isServed;
  if (item?.code !== undefined)
    return forDoctor
      ? ['doctor', ...source, '--only', item.code, ...names]
      : ['doctor', '--explain', item.code];
  if (!isServed && (view === 'lookups' || (item !== null && item.lookups !== null)))
    return ['capture', ...source, '-o', 'flow', ...filters, ...names];
  if (!isServed && view === 'clients')
    return ['capture', ...source, '-o', 'clients', ...filters, ...names];
  if (forDoctor && view === 'findings') return ['doctor', ...source, ...names];
  return ['top', ...source, '--once', '--view', view, ...filters, ...names];
}

/** The traffic source, as options accepted by every command that reads traffic. */
function sourceWords(source: CommandSource): readonly string[] {
  const { files, device, netns, dnstap, ports, servers, serverToken, replicas } = source;
  return [
    ...files,
    ...servers.flatMap(({ host, port }) => ['--server', printHostPort(host, port)]),
    ...(replicas === null
      ? []
      : [
          ...['--replicas', '--replica-namespace', replicas.namespace],
          ...(replicas.selector === null ? [] : ['--replica-selector', replicas.selector]),
          ...['--replica-port', String(replicas.port)],
          ...replicas.nodes.flatMap((node) => ['--replica-node', node]),
          ...(replicas.nodeSelector === null
            ? []
            : ['--replica-node-selector', replicas.nodeSelector]),
          ...['--replica-max', String(replicas.podsMax)],
        ]),
    ...(serverToken === null ? [] : ['--server-token', serverToken]),
    ...(device === null ? [] : ['-i', device]),
    ...(netns === null ? [] : ['--netns', netns]),
    ...(dnstap === null ? [] : ['--dnstap', dnstap]),
    ...(ports === null ? [] : ['--port', ports.join(',')]),
  ];
}

export function nameWords(options: CommandSource): readonly string[] {
  const { manifests, kubeconfig, context, as, asGroup } = options;
  const cluster = options.cluster && options.replicas === null;
  const given = [
    ...(kubeconfig === null ? [] : ['--kubeconfig', kubeconfig]),
    ...(context === null ? [] : ['--context', context]),
    ...(as === null ? [] : ['--as', as]),
    ...asGroup.flatMap((group) => ['--as-group', group]),
  ];
  if (manifests !== null) return ['--manifests', manifests];
  return cluster && given.length === 0 ? ['--cluster'] : given;
}

export function printCommand(program: string, words: readonly string[]): string {
  return [program, ...words.map(shellWord)].join(' ');
}
