/**
 * `--cluster`: the objects that have their say in DNS, from the cluster that kubectl would talk to.
 */
import type { GivenFile } from '../lint/gather.ts';
import { fileOf, readObjects } from '../live/cluster/objects.ts';
import { configured } from '../live/cluster/wanted.ts';
import { accessOf, withCluster } from './cluster-options.ts';
import type { Io } from './command.ts';
import type { LintOptions } from './lint-options.ts';
import { clusterNotAsked } from '../kube/api/not-asked.ts';

/** One file for each kind. What may not be listed is told of and left out. */
export async function clusterFiles(options: LintOptions, io: Io): Promise<readonly GivenFile[]> {
  const access = accessOf(options, io);
  return withCluster(access, async (client) => {
    const lists = await readObjects(client, configured('kube-system'), io.signal);
    return lists.flatMap(({ wanted, items, failure }) => {
      if (failure === null) return [fileOf(access.name, wanted.kind, items)];
      if (failure.kind !== 'forbidden' && failure.kind !== 'missing')
        throw clusterNotAsked(failure, { remedy: 'Without a cluster: ndots lint FILE' });
      io.err(`ndots lint: ${failure.message}: left out\n`);
      return [];
    });
  });
}
