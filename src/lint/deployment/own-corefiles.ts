/** Decides which Corefiles belong to an object when several are read together. */
import { dirname, relative, sep } from 'node:path';
import type { LintObject, LintedCorefile, Subject } from '../subject.ts';

/**
 * The Corefiles of servers that an object may run. If there are several, those that are nearest to
 * it: in the same file, else the same folder, else the one above and so on, because a folder of
 * examples or clusters has a Corefile for each.
 */
export function ownCorefiles(
  { file }: Pick<LintObject, 'file'>,
  { corefiles }: Pick<Subject, 'corefiles'>,
): readonly LintedCorefile[] {
  const servers = corefiles.filter(({ fragment, role }) => !fragment && role === 'server');
  const least = Math.min(...servers.map((each) => steps(file, each.file)));
  return servers.filter((each) => steps(file, each.file) === least);
}

/** The number of folders between the two files; -1: they are the same file. */
function steps(from: string, to: string): number {
  if (from === to) return -1;
  const way = relative(dirname(from), dirname(to));
  return way === '' ? 0 : way.split(sep).length;
}
