/**
 * Forwarded misses: every query has a name of its own, the upstream is a local Unbound that answers anything. Beside dnsdist
 * and BIND (forward only), each with one thread on the same processor.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered } from '../test/kit/child.ts';
import { load, median, type Load } from './kit/dnsperf.ts';
import {
  bindForwarder,
  dnsdist,
  ndots,
  need,
  ratio,
  rounds,
  runSeconds,
  smoke,
  versionOf,
  wildcardUpstream,
  workFolder,
} from './kit/peers.ts';

need('dnsperf', 'unbound', 'dnsdist', 'named', 'taskset');
const folder = workFolder();
const files = Array.from({ length: (rounds + 1) * 3 }, (_, nth) => {
  const file = join(folder, `misses-${nth}.txt`);
  writeFileSync(
    file,
    Array.from(
      { length: smoke ? 20_000 : 400_000 },
      (_unused, i) => `n${nth}-${i}.bench. A\n`,
    ).join(''),
  );
  return file;
});
const upstream = wildcardUpstream(folder, 5400, 1);
await answered(5400, 'probe.bench.');
const servers = {
  ndots: {
    port: 5410,
    child: ndots(
      '.:5410 {\n    bind 127.0.0.1\n    errors\n    prometheus 127.0.0.1:5413\n    forward . 127.0.0.1:5400\n    cache 30\n}\n',
      folder,
      { cpu: 0 },
    ),
  },
  dnsdist: { port: 5420, child: dnsdist(folder, 5420, 5400, 0) },
  bind: { port: 5430, child: bindForwarder(folder, 5430, 5400, 0) },
};
for (const { port, child } of Object.values(servers)) {
  await answered(port, 'probe.bench.').catch((error: Error) => {
    throw new Error(`${child.name}: ${error.message}\n${child.output()}`);
  });
}
const runs: Record<string, Load[]> = {};
let file = 0;
for (let round = 0; round < rounds; round++) {
  for (const [name, { port, child }] of Object.entries(servers)) {
    (runs[name] ??= []).push(
      load(child, {
        port,
        file: files[file++ % files.length]!,
        seconds: runSeconds,
        outstanding: 200,
      }),
    );
  }
}
console.log(
  `peers: dnsdist ${versionOf('dnsdist', '--version')}; ${versionOf('named', '-v')}; upstream ${versionOf('unbound', '-V')}`,
);
const middle = Object.fromEntries(
  Object.entries(runs).map(([name, list]) => [name, median(list, ({ perSecond }) => perSecond)]),
);
for (const [name, { perSecond, cpuMicros, lost, rcodes }] of Object.entries(middle)) {
  console.log(
    `${name.padEnd(8)} ${perSecond.toFixed(0).padStart(8)} replies/s  ${cpuMicros.toFixed(2).padStart(6)} µs CPU each  lost ${lost}  ${rcodes}`,
  );
}
const { ndots: ours, dnsdist: dist, bind } = middle as Record<string, Load>;
console.log(
  `replies/s,     ndots : bind        ${ratio(ours!.perSecond, bind!.perSecond)}   (goal ≥ 1.0 against one of the two)`,
);
console.log(`replies/s,     ndots : dnsdist     ${ratio(ours!.perSecond, dist!.perSecond)}`);
console.log(`CPU per query, ndots : bind        ${ratio(ours!.cpuMicros, bind!.cpuMicros)}`);
console.log(`CPU per query, ndots : dnsdist     ${ratio(ours!.cpuMicros, dist!.cpuMicros)}`);
await Promise.all([upstream.stop(), ...Object.values(servers).map(({ child }) => child.stop())]);
process.exit(0);
