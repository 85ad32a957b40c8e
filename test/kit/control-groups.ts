/** Control groups as the system would show them, laid out in a folder of the test's own. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';
import type { ControlGroupFiles } from '../../src/server/base/control-groups.ts';

/** Lays out such files, each time anew: what the process's own file says, and the files below the mount. To be called in a suite, at whose end all are removed. */
export function controlGroups(): (
  own: string,
  groups: Readonly<Record<string, string>>,
) => ControlGroupFiles {
  const folder = mkdtempSync(join(tmpdir(), 'ndots-limit-'));
  after(() => rmSync(folder, { recursive: true }));
  let made = 0;
  return (own, groups) => {
    const root = join(folder, String(made++));
    for (const [name, text] of Object.entries({ ...groups, own })) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), text);
    }
    return { root, own: join(root, 'own') };
  };
}
