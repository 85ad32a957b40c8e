/**
 * The cost of an idle server: its memory after startup, and its CPU time until the first reply, with kubeadm's
 * Corefile. `BEFORE=DIRECTORY` selects an older ndots tree with its packages (`git worktree add DIRECTORY COMMIT`). It
 * is started alternately with this one. New features must not cost anything as long as no Corefile uses them.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answered, start } from '../test/kit/child.ts';
import { figure, type Goal, smoke } from './kit/figures.ts';
import { kubeadmCorefile, services, workDirectory } from './kit/peers.ts';

const directory = workDirectory();
const { manifests, names } = services(directory, 100);
const name = [...names.keys()][0]!;
const corefile = join(directory, 'Corefile');
writeFileSync(corefile, kubeadmCorefile(5300, manifests).replace('loop\n', ''));
const here = fileURLToPath(new URL('../', import.meta.url));
const before = process.env['BEFORE'];

interface Run {
  readonly residentMiB: number;
  readonly startMs: number;
  readonly cpuMs: number;
}

async function run(tree: string): Promise<Run> {
  const child = start('ndots', [
    join(tree, 'bin/ndots'),
    'serve',
    '-conf',
    corefile,
    '-workers',
    '1',
  ]);
  const startMs = await answered(5300, name);
  const cpuMs = child.cpuSeconds() * 1000;
  await new Promise((resolve) => setTimeout(resolve, 4000));
  const residentMiB = child.residentMiB();
  await child.stop();
  return { residentMiB, startMs, cpuMs };
}

const middle = (runs: readonly Run[], key: keyof Run): number =>
  runs.map((each) => each[key]).toSorted((a, b) => a - b)[runs.length >> 1]!;

const now: Run[] = [];
const then: Run[] = [];
// Each program's first start fills the compile cache.
for (let round = 0; round <= (smoke ? 1 : 9); round++) {
  const first = await run(here);
  const second = before === undefined ? null : await run(before);
  if (round === 0) continue;
  now.push(first);
  if (second !== null) then.push(second);
}
figure('memory of an idle server, median', middle(now, 'residentMiB'), 'MiB');
figure('CPU time to first answer, median', middle(now, 'cpuMs'), 'ms');
figure('exec to first answer, median', middle(now, 'startMs'), 'ms');
if (then.length > 0) {
  const goal: Goal = { atMost: 1.02 };
  const compare = (label: string, key: keyof Run): void =>
    figure(`${label}, now : before`, middle(now, key) / middle(then, key), '', goal);
  compare('memory of an idle server', 'residentMiB');
  compare('CPU time to first answer', 'cpuMs');
  compare('exec to first answer', 'startMs');
}
process.exit(0);
