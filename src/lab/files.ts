/** Files that a machine of a lab has of its own: resolv.conf, hosts, nsswitch.conf. */
import { mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { errorCode } from '../base/error-code.ts';

/** Where a lab keeps its files: in memory, and gone with it. */
export const LAB_FOLDER = '/run/ndots-lab';

/** A machine's own files by the path under which its programs see them. */
export type OwnFiles = Readonly<Record<string, string>>;

/** Writes the files of a machine; `wordsBehind` makes programs see them. */
export function writeFiles(machine: string, files: OwnFiles): void {
  const folder = join(LAB_FOLDER, machine);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    standIn(path);
  }
}

/** A program's words, so that it runs in a machine's network and sees its files in the place of this machine's. */
export function wordsBehind(
  machine: string,
  files: OwnFiles,
  words: readonly string[],
): readonly string[] {
  const binds = Object.keys(files).map(
    (path) => `mount --bind ${join(LAB_FOLDER, machine, path)} ${path} &&`,
  );
  const script = `${binds.join(' ')} exec "$@"`;
  return [
    ...['nsenter', `--net=/run/netns/${machine}`, '--'],
    ...['unshare', '--mount', '--', 'sh', '-c', script, 'sh', ...words],
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
