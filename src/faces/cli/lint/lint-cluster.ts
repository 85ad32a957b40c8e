/** `--cluster`: reads the objects that affect DNS from kubectl's current cluster. */
import type { GivenFile } from '../../../tools/lint/gather.ts';
import { lackingOf } from '../../../tools/doctor/cluster/lacking.ts';
import { fileOf, readObjects, whole } from '../../../tools/doctor/cluster/objects.ts';
import { isUnusual, Pods } from '../../../tools/doctor/cluster/pods.ts';
import { configured, running } from '../../../tools/doctor/cluster/wanted.ts';
import { accessOf, withCluster } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import type { LintOptions } from './lint-options.ts';
import { clusterNotAsked } from '../../../tools/pods/not-asked.ts';

/**
 * Creates one file per kind or, for pods, one per workload that has its own DNS settings. Reports and skips objects
 * that cannot be listed.
 */
export async function clusterFiles(options: LintOptions, io: Io): Promise<readonly GivenFile[]> {
  const access = accessOf(options, io);
  const { namespace } = options;
  const pods = new Pods(namespace);
  const wanted = [
    ...configured(namespace),
    ...running(namespace).filter(({ kind }) => kind === 'Pod'),
  ];
  return withCluster(access, async (client) => {
    const lists = await readObjects(client, wanted, io.signal, (kind, item) =>
      kind === 'Pod' ? { item: null, bytes: pods.take(item) } : whole(item),
    );
    const files = lists.flatMap(({ wanted: { kind }, items, failure }) => {
      if (failure === null) return kind === 'Pod' ? [] : [fileOf(access.name, kind, items)];
      if (failure.kind !== 'forbidden' && failure.kind !== 'missing')
        throw clusterNotAsked(failure, { remedy: 'Without a cluster: ndots lint FILE' });
      io.err(`ndots lint: ${failure.message}: skipped\n`);
      return [];
    });
    for (const { why, so } of lackingOf(lists.filter(({ failure }) => failure === null)))
      io.err(`ndots lint: ${why}: omitting ${so}\n`);
    const unusual = pods.clients.filter(isUnusual).map(({ sample }) => sample);
    return unusual.length === 0 ? files : [...files, fileOf(access.name, 'Pod', unusual)];
  });
}
