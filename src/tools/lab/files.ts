/** The files that belong to a machine: resolv.conf, hosts and nsswitch.conf. */
import { existsSync, mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, normalize, resolve } from 'node:path';
import { errorCode } from '../../server/base/error-code.ts';
import { Problem } from '../../server/base/problem.ts';

/** Held in memory and removed with the lab. */
export const LAB_DIRECTORY = '/run/ndots-lab';

/** A machine's own files, by the paths where its programs see them. */
export type OwnFiles = Readonly<Record<string, string>>;

/**
 * Writes a machine's files. `wordsBehind` makes them visible to programs.
 * @throws Problem if a file to be covered does not exist on this machine
 */
export function writeFiles(machine: string, files: OwnFiles): void {
  const directory = join(LAB_DIRECTORY, machine);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(directory, dirname(path)), { recursive: true });
    writeFileSync(join(directory, path), text);
    standIn(path);
    if (existsSync(path)) continue;
    throw new Problem({
      code: 'lab-file',
      text: `a pod can replace ${path} only if the file exists on this machine`,
      remedy: `touch ${path}`,
    });
  }
}

/** True if a machine's own file may have this path, which must be absolute and normalised so that it cannot escape. */
export function isOwnPath(path: string): boolean {
  return (
    isAbsolute(path) && normalize(path) === path && !path.endsWith('/') && !/\p{Cc}/u.test(path)
  );
}

/** Returns a command line that runs a program in a machine's network with the machine's own files. */
export function wordsBehind(
  machine: string,
  files: OwnFiles,
  words: readonly string[],
): readonly string[] {
  const binds = Object.keys(files).flatMap((path) => [join(LAB_DIRECTORY, machine, path), path]);
  // Paths are passed as arguments rather than embedded in the script, so that nothing in them is executed.
  const script = `${'mount --bind "$1" "$2" && shift 2 && '.repeat(binds.length / 2)}exec "$@"`;
  return [
    ...['nsenter', `--net=/run/netns/${machine}`, '--'],
    ...['unshare', '--mount', '--', 'sh', '-c', script, 'sh', ...binds, ...words],
  ];
}

/**
 * Creates a mount's target, which must exist. Since a lab has a separate /run, a symbolic link into /run would be
 * dangling, so create the link's target there.
 */
function standIn(path: string): void {
  try {
    const target = readlinkSync(path);
    const full = isAbsolute(target) ? target : resolve(dirname(path), target);
    if (!full.startsWith('/run/')) return;
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, '', { flag: 'a' });
  } catch (error) {
    // It is not a link, or there is no such file, so there is nothing to create.
    if (!['EINVAL', 'ENOENT'].includes(errorCode(error) ?? '')) throw error;
  }
}
