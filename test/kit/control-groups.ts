/** Creates control groups in a test's directory, as they would appear in the system. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';
import type { ControlGroupFiles } from '../../src/server/base/control-groups.ts';

/**
 * Creates the files in a new directory: the process's own file, and those under the mount. Call it in a suite, because
 * they are removed when the suite ends.
 */
export function controlGroups(): (
  own: string,
  groups: Readonly<Record<string, string>>,
) => ControlGroupFiles {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-limit-'));
  after(() => rmSync(directory, { recursive: true }));
  let made = 0;
  return (own, groups) => {
    const root = join(directory, String(made++));
    for (const [name, text] of Object.entries({ ...groups, own })) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), text);
    }
    return { root, own: join(root, 'own') };
  };
}
