/** Keeps pod names in a live view up to date. */
import type { LiveModel } from '../../../tools/watch/live-model.ts';
import { addressOwners } from '../capture/capture-names.ts';
import type { Io } from '../command.ts';

/** Refresh interval of address owners, milliseconds. */
const NAMES_MS = 60_000;

/**
 * Refreshes the owners periodically if they come from a cluster.
 * @returns a function that stops the updates
 */
export function followNames(
  options: Parameters<typeof addressOwners>[0],
  io: Io,
  model: Pick<LiveModel, 'name'>,
): () => void {
  if (!options.cluster) return () => undefined;
  const renew = async (): Promise<void> => {
    // If a refresh fails, the previous names remain.
    const owners = await addressOwners(options, io, () => undefined).catch(() => null);
    if (owners !== null && owners.size > 0) model.name(owners);
  };
  const timer = setInterval(() => void renew(), NAMES_MS);
  return () => clearInterval(timer);
}
