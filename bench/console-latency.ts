/**
 * Latency at 20 000 queries per second while a console with ten open tabs reads the server, compared with the same server
 * without a reader. It is measured from the time when each query is due. As a control, the same is measured again without a
 * console.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered } from '../test/kit/child.ts';
import { needConsole, openConsole, tokenFile } from './kit/console.ts';
import { takeRounds, tellRatio, type Disturbance } from './kit/disturbance.ts';
import { smoke } from './kit/figures.ts';
import { compile, ndots, need, services, workDirectory } from './kit/peers.ts';

need('gcc', 'taskset', 'chrt');
needConsole();
const [PORT, CONSOLE, PAGE] = [5310, 9310, 8310];
const TABS = 10;
/** The wait for the console's first frames, which take longer than later ones, in milliseconds. */
const SETTLE_MS = smoke ? 500 : 3000;
const directory = workDirectory();
const program = compile('pace.c', directory);
const { manifests, names } = services(directory, 5000);
const file = join(directory, 'names.txt');
writeFileSync(file, [...names.keys()].map((name) => `${name.slice(0, -1)} 1\n`).join(''));
const token = tokenFile(directory);
const corefile = `.:${PORT} {
  bind 127.0.0.1
  errors
  console 127.0.0.1:${CONSOLE} {
    token_file ${token}
  }
  kubernetes cluster.local {
    manifests ${manifests}
  }
  cache 30
  loadbalance
}
`;
const server = ndots(corefile, directory, { cpu: 0 });
await answered(PORT, [...names.keys()][0]!);

const readers: number[] = [];
let frames = 0;
const readByTabs: Disturbance = async () => {
  const reader = await openConsole({ server: CONSOLE, page: PAGE, token, cpu: null });
  readers.push(reader.child.pid);
  reader.openTabs(TABS);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  return async () => {
    await reader.close();
    frames += reader.frames;
    readers.pop();
  };
};
const nothing: Disturbance = () => () => undefined;

const load = {
  program,
  port: PORT,
  rate: smoke ? 1000 : 20_000,
  seconds: smoke ? 1 : 8,
  file,
};
const own = (): readonly number[] => [server.pid, ...readers];
const taken = await takeRounds(smoke ? 1 : 7, load, [readByTabs, nothing], own);
tellRatio('p99.9, console with ten tabs : no reader', taken, 0, { atMost: 1.2 });
tellRatio('p99.9, no reader : no reader', taken, 1, null);
console.log(`${frames} frames`);
await server.stop();
process.exit(0);
