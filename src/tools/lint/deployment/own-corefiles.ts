/** Decides which Corefiles belong to an object when several are read together. */
import { dirname, relative, sep } from 'node:path';
import { child, children, text } from '../../../server/base/json-object.ts';
import { podSpecOf } from '../workload.ts';
import type { CorefileRole, LintObject, LintedCorefile, Subject } from '../subject.ts';

/**
 * The Corefiles of the servers that an object may run. These are in the ConfigMaps it mounts, if they are part of the
 * input. Otherwise, they are the nearest ones, in the same file, directory or parent directory, because a directory of
 * examples has a Corefile for each.
 */
export function ownCorefiles(
  object: Pick<LintObject, 'file'> & Partial<LintObject>,
  { corefiles }: Pick<Subject, 'corefiles'>,
  role: CorefileRole = 'server',
): readonly LintedCorefile[] {
  const { file } = object;
  const servers = corefiles.filter((each) => !each.fragment && each.role === role);
  const mounted = mountedMaps(object);
  const own = servers.filter(
    ({ object: map }) =>
      map?.kind === 'ConfigMap' && map.namespace === object.namespace && mounted.includes(map.name),
  );
  if (own.length > 0) return own;
  const least = Math.min(...servers.map((each) => steps(file, each.file)));
  return servers.filter((each) => steps(file, each.file) === least);
}

/** The names of the ConfigMaps mounted as volumes by an object's pods. */
function mountedMaps({ kind, value, ...rest }: Partial<LintObject>): readonly string[] {
  if (kind === undefined || value === undefined) return [];
  const pods = podSpecOf({ kind, value, ...rest } as LintObject);
  if (pods === null) return [];
  return children(pods.spec, 'volumes').map((volume) => text(child(volume, 'configMap'), 'name'));
}

/** The number of directories between two files, or -1 if they are the same file. */
function steps(from: string, to: string): number {
  if (from === to) return -1;
  const way = relative(dirname(from), dirname(to));
  return way === '' ? 0 : way.split(sep).length;
}
