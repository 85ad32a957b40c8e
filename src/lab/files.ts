/** Files that a machine of a lab has of its own: resolv.conf, hosts, nsswitch.conf. */
import { existsSync, mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, normalize, resolve } from 'node:path';
import { errorCode } from '../base/error-code.ts';
import { Problem } from '../base/problem.ts';

/** Where a lab keeps its files: in memory, and gone with it. */
export const LAB_FOLDER = '/run/ndots-lab';

/** A machine's own files by the path under which its programs see them. */
export type OwnFiles = Readonly<Record<string, string>>;

/** Writes the files of a machine; `wordsBehind` makes programs see them. @throws Problem if this machine has nothing that one could hide */
export function writeFiles(machine: string, files: OwnFiles): void {
  const folder = join(LAB_FOLDER, machine);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    standIn(path);
    if (existsSync(path)) continue;
    throw new Problem({
      code: 'lab-file',
      text: `a pod cannot have a file ${path}: this machine has none that it could hide`,
      remedy: `touch ${path}`,
    });
  }
}

/** Whether that can be the path of a machine's own file: absolute, and as short as it can be written, so that it leads nowhere else. */
export function isOwnPath(path: string): boolean {
  return (
    isAbsolute(path) && normalize(path) === path && !path.endsWith('/') && !/\p{Cc}/u.test(path)
  );
}

/** A program's words, so that it runs in a machine's network and sees its files in the place of this machine's. */
export function wordsBehind(
  machine: string,
  files: OwnFiles,
  words: readonly string[],
): readonly string[] {
  const binds = Object.keys(files).flatMap((path) => [join(LAB_FOLDER, machine, path), path]);
  // No path is a part of the script: whatever stands in one is no command.
  const script = `${'mount --bind "$1" "$2" && shift 2 && '.repeat(binds.length / 2)}exec "$@"`;
  return [
    ...['nsenter', `--net=/run/netns/${machine}`, '--'],
    ...['unshare', '--mount', '--', 'sh', '-c', script, 'sh', ...binds, ...words],
  ];
}

/**
 * A file can only be hidden by another one if it is there. A symbolic link to below /run leads nowhere, since a lab has a /run of its own:
 * what it leads to is made there.
 */
function standIn(path: string): void {
  try {
    const target = readlinkSync(path);
    const full = isAbsolute(target) ? target : resolve(dirname(path), target);
    if (!full.startsWith('/run/')) return;
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, '', { flag: 'a' });
  } catch (error) {
    // No link, or no such file: then nothing is hidden.
    if (!['EINVAL', 'ENOENT'].includes(errorCode(error) ?? '')) throw error;
  }
}
