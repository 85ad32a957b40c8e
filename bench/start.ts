/** From exec to the first correct answer, on the example cluster; beside an empty program of the same runtime. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { answered, start } from '../test/kit/child.ts';
import { ratio, smoke } from './kit/peers.ts';

const home = fileURLToPath(new URL('../', import.meta.url));
const times: number[] = [];
const empty: number[] = [];
for (let run = 0; run < (smoke ? 1 : 7); run++) {
  const begin = performance.now();
  spawnSync(process.execPath, ['-e', '0']);
  empty.push(performance.now() - begin);
  const child = start('ndots', [`${home}bin/ndots`, 'serve', '--example']);
  times.push(await answered(1053, 'backend.critical-app.svc.cluster.local'));
  await child.stop();
}
const middle = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[list.length >> 1]!;
console.log(
  `ndots: exec to first answer ${middle(times).toFixed(0)} ms (${times.map((time) => time.toFixed(0)).join(' ')})   (goal ≤ 400)`,
);
console.log(
  `empty program of the runtime ${middle(empty).toFixed(0)} ms; ratio ${ratio(middle(times), middle(empty))}`,
);
process.exit(0);
