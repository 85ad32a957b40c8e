/** `--cluster`: the objects that have their say in DNS, from the cluster that kubectl would talk to. */
import { Problem } from '../base/problem.ts';
import { ApiFailure } from '../kube/api/failure.ts';
import type { GivenFile } from '../lint/gather.ts';
import { fileOf, readObjects } from '../live/cluster/objects.ts';
import { configured } from '../live/cluster/wanted.ts';
import { accessOf, withCluster } from './cluster-options.ts';
import type { Io } from './command.ts';
import type { LintOptions } from './lint-options.ts';

/** One file for each kind. What may not be listed is told of and left out. */
export async function clusterFiles(options: LintOptions, io: Io): Promise<readonly GivenFile[]> {
  const access = accessOf(options, io);
  return withCluster(access, async (client) => {
    const lists = await readObjects(client, configured('kube-system'), io.signal);
    return lists.flatMap(({ wanted, items, failure }) => {
      if (failure === null) return [fileOf(access.name, wanted.kind, items)];
      if (failure.kind !== 'forbidden' && failure.kind !== 'missing') throw notAsked(failure);
      io.err(`ndots lint: ${failure.message}: left out\n`);
      return [];
    });
  });
}

function notAsked(failure: ApiFailure): Problem {
  return new Problem({
    code: 'cluster-not-asked',
    text: failure.message,
    hint: failure.advice || undefined,
    remedy: 'Without a cluster: ndots lint FILE',
    cause: failure,
  });
}
