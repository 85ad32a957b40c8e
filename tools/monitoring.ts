/**
 * Writes deploy/monitoring/, with copies for the Helm chart: recording rules, alerts and a dashboard. They are
 * generated from tables in `monitoring/`, so that each window and panel is defined once. `node tools/monitoring.ts
 * --check` only reports whether the files are current.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { checkGroups } from './monitoring/check-rules.ts';
import { dashboard } from './monitoring/dashboard.ts';
import { serverGroups } from './monitoring/server-rules.ts';

/** The Helm chart needs copies because it can only read its own files. */
const directories = ['../deploy/monitoring', '../deploy/helm/ndots/files'].map((directory) =>
  join(import.meta.dirname, directory),
);

const head =
  "# Recording rules and alerts for cluster DNS, written by tools/monitoring.ts. They use CoreDNS's metric names, so they also work with CoreDNS.\n";

const files = {
  'rules.yaml': head + stringify({ groups: [...serverGroups, ...checkGroups] }, { lineWidth: 0 }),
  'dashboard.json': `${JSON.stringify(dashboard, null, 2)}\n`,
};

const onlyCheck = process.argv.includes('--check');
for (const [name, text] of Object.entries(files))
  for (const directory of directories) {
    const path = join(directory, name);
    if (!onlyCheck) writeFileSync(path, text);
    else if (readFileSync(path, 'utf8') !== text) {
      console.error(`${path} is not what its tables say: node tools/monitoring.ts`);
      process.exitCode = 1;
    }
  }
