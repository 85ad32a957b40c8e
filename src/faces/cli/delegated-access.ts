/** `--auth`: decides who authenticates readers of a live view. */
import { systemClock } from '../../server/base/clock.ts';
import type { Log } from '../../server/base/log.ts';
import { ACCESS_AUDIENCE, ApiAccess } from '../../server/kube/access/api-access.ts';
import { accessOf, type ClusterOptions } from './cluster-options.ts';
import type { Io } from './command.ts';
import { one, type One } from './option.ts';
import { choice, usage } from './option-values.ts';
import { coreVersion } from './version/version.ts';

const deciders = ['token', 'kubernetes'] as const;

export const authOption: One<(typeof deciders)[number]> = one(
  '--auth',
  choice('WHO', deciders),
  'token (one for all readers), or kubernetes: the API server decides about each reader (token)',
);

/**
 * True if the API server makes the decision.
 * @throws Problem (`usage`)
 */
export function isDelegated({
  auth,
  tokenFile,
}: {
  readonly auth: (typeof deciders)[number] | null;
  readonly tokenFile: string | null;
}): boolean {
  if (auth !== 'kubernetes') return false;
  if (tokenFile === null) return true;
  throw usage(
    'either --token-file or --auth kubernetes, not both',
    `With --auth kubernetes, readers bring their own tokens: kubectl create token NAME --audience ${ACCESS_AUDIENCE}`,
  );
}

/**
 * Asks the selected cluster's API server.
 * @throws Problem
 */
export function delegatedAccess(options: ClusterOptions, io: Pick<Io, 'env'>, log: Log): ApiAccess {
  const { connection } = accessOf(options, io);
  return new ApiAccess({ connection, version: coreVersion, clock: systemClock, log });
}
