/**
 * The etcd plugin with a real etcd. Measures the memory for 100 000 keys, the CPU per query compared with CoreDNS, and
 * the delay from an event to its reply. Then kills etcd under 20 000 queries per second. The goals are 60 MiB, no lost
 * or wrong replies, and changes visible within 2 s.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { etcdPrograms, startEtcd } from '../test/kit/etcd.ts';
import { answered, printed, start, type Child } from '../test/kit/child.ts';
import { load } from './kit/dnsperf.ts';
import { beside, figure, smoke } from './kit/figures.ts';
import { coredns, corednsProgram, ndots, need, runSeconds, workDirectory } from './kit/peers.ts';

const program = etcdPrograms().at(-1);
if (program === undefined) {
  console.log('skipped: etcd not installed (etcd-server, or ETCD=FILE)');
  process.exit(0);
}
need('dnsperf');
const directory = workDirectory();
const keys = smoke ? 2000 : 100_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const etcd = await startEtcd(program.path);
beside('etcd', program.version);

const corefile = (port: number, directives: string): string =>
  `.:${port} {\n  bind 127.0.0.1\n  ${directives}\n}\n`;
const directive = `etcd bench.test {\n    endpoint ${etcd.endpoint}\n    startup_timeout 60s\n  }`;

const bare = ndots(corefile(5901, 'whoami'), directory);
await printed(bare, /ndots-\d/);
await pause(smoke ? 200 : 3000);
const idle = bare.residentMiB();
await bare.stop();
const empty = ndots(corefile(5901, directive), directory);
await printed(empty, /ndots-\d/);
await pause(smoke ? 200 : 3000);
const connected = empty.residentMiB();
await empty.stop();

const nameOf = (i: number): string => `n${i}.service-${i % 1000}.bench.test`;
const atATime = 200;
for (let from = 0; from < keys; from += atATime) {
  const some = Array.from({ length: Math.min(atATime, keys - from) }, (_, i) => from + i);
  await Promise.all(
    some.map((i) =>
      etcd.put(`/skydns/${nameOf(i).split('.').toReversed().join('/')}`, {
        host: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`,
        port: 8080,
        priority: 10,
        weight: 10,
        ttl: 30,
      }),
    ),
  );
}
const server: Child = ndots(corefile(5901, directive), directory, { cpu: 0 });
const listedMs = await answered(5901, nameOf(keys - 1), 60_000);
await pause(smoke ? 500 : 5000);
const full = server.residentMiB();
figure('memory without etcd', idle, 'MiB');
figure('memory following an empty etcd', connected, 'MiB');
figure(`memory with ${keys} keys`, full, 'MiB');
figure(`${keys} keys over idle`, full - idle, 'MiB', { atMost: 60 });
figure('start to first answer', listedMs, 'ms');

const file = join(directory, 'names');
const lines = Array.from({ length: Math.min(keys, 20_000) }, (_, i) => `${nameOf(i)} A`);
writeFileSync(file, `${lines.join('\n')}\n`);
const options = { port: 5901, file, seconds: runSeconds, rate: smoke ? 200 : 2000 };
const own = load(server, options);
const peerProgram = corednsProgram();
figure('CPU time per query', own.cpuMicros, 'µs');
if (peerProgram === null) console.log('CoreDNS is not there (COREDNS=FILE)');
else {
  const plain = `etcd bench.test {\n    endpoint ${etcd.endpoint}\n  }`;
  const peer = coredns(peerProgram, corefile(5902, plain), directory, 0);
  await answered(5902, nameOf(1));
  const theirs = load(peer, { ...options, port: 5902 });
  figure('CoreDNS, CPU time per query, with etcd’s', theirs.cpuMicros, 'µs');
  figure('CPU time per query, ndots : CoreDNS', own.cpuMicros / theirs.cpuMicros, '', {
    atMost: 0.5,
  });
  await peer.stop();
}

const took: number[] = [];
for (let i = 0; i < (smoke ? 3 : 50); i++) {
  const begin = performance.now();
  await etcd.put(`/skydns/test/bench/fresh-${i}`, { host: '10.0.0.1' });
  await answered(5901, `fresh-${i}.bench.test`);
  took.push(performance.now() - begin);
}
took.sort((a, b) => a - b);
figure('put to answered, median (asked every 5 ms)', took[took.length >> 1]!, 'ms', { atMost: 50 });
figure('put to answered, longest', took.at(-1)!, 'ms');

const rate = smoke ? 1000 : 20_000;
const seconds = smoke ? 3 : 12;
const words = ['-s', '127.0.0.1', '-p', '5901', '-d', file, '-l', `${seconds}`, '-Q', `${rate}`];
const perf = start('dnsperf', ['dnsperf', ...words, '-q', '1000', '-c', '4', '-T', '1'], {
  cpu: 1,
});
await pause(1000 * (seconds / 4));
await etcd.kill();
await pause(1000 * (seconds / 4));
await etcd.restart();
const begin = performance.now();
await etcd.put('/skydns/test/bench/back', { host: '10.0.0.1' });
await answered(5901, 'back.bench.test');
const backMs = performance.now() - begin;
await perf.exitCode;
const text = perf.output();
const lost = Number(/Queries lost:\s+(\d+)/.exec(text)?.[1]);
const right = Number(/NOERROR \d+ \(([\d.]+)%\)/.exec(text)?.[1]);
figure(
  'queries while etcd was killed and came back',
  Number(/Queries per second:\s+([\d.]+)/.exec(text)?.[1]),
  '/s',
);
figure('lost of these', lost, '', { atMost: 0 });
figure('answered right', right, '%', { atLeast: 100 });
figure('back to followed', backMs, 'ms', { atMost: 2000 });
await server.stop();
await etcd.stop();
process.exit(0);
