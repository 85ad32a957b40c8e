/** Which Corefiles an object runs, where several were read together. */
import { dirname, relative, sep } from 'node:path';
import type { LintObject, LintedCorefile, Subject } from '../subject.ts';

/**
 * The Corefiles of servers that an object may run: of several those that lie nearest to it, in the same file, the same folder, one above …:
 * a folder of examples or of clusters has a Corefile for each.
 */
export function ownCorefiles(
  { file }: Pick<LintObject, 'file'>,
  { corefiles }: Pick<Subject, 'corefiles'>,
): readonly LintedCorefile[] {
  const servers = corefiles.filter(({ fragment, role }) => !fragment && role === 'server');
  const least = Math.min(...servers.map((each) => steps(file, each.file)));
  return servers.filter((each) => steps(file, each.file) === least);
}

/** Folders on the way from one file to the other; -1: they are the same. */
function steps(from: string, to: string): number {
  if (from === to) return -1;
  const way = relative(dirname(from), dirname(to));
  return way === '' ? 0 : way.split(sep).length;
}
