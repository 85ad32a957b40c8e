/**
 * The time from exec to the first correct reply with the example cluster, alternating with an empty program on the same
 * runtime. CPU time (user and system, all threads) is the figure that other load on the machine affects least.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { answered, start } from '../test/kit/child.ts';
import { beside, figure, smoke } from './kit/figures.ts';

const home = fileURLToPath(new URL('../', import.meta.url));
const times: number[] = [];
const cpu: number[] = [];
const empty: number[] = [];
// The first run fills the compile cache that later runs use.
for (let run = 0; run <= (smoke ? 1 : 11); run++) {
  const begin = performance.now();
  spawnSync(process.execPath, ['-e', '0']);
  const bare = performance.now() - begin;
  const child = start('ndots', [`${home}bin/ndots`, 'serve', '--example']);
  const took = await answered(1053, 'backend.critical-app.svc.cluster.local');
  const used = child.cpuSeconds() * 1000;
  await child.stop();
  if (run === 0) continue;
  empty.push(bare);
  times.push(took);
  cpu.push(used);
}
const middle = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[list.length >> 1]!;
console.log(`exec to first answer: ${times.map((time) => time.toFixed(0)).join(' ')} ms`);
beside('node', process.version);
figure('exec to first answer, median', middle(times), 'ms', { atMost: 180 });
figure('exec to first answer, least', Math.min(...times), 'ms');
figure('CPU time to first answer, median', middle(cpu), 'ms');
figure('empty program of the runtime, median', middle(empty), 'ms');
figure('exec to first answer : empty program', middle(times) / middle(empty));
process.exit(0);
