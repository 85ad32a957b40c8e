/**
 * Forwarded misses: every query has a name of its own, the upstream is a local Unbound that answers anything. ndots without and
 * with cache, beside dnsdist, BIND (forward only) and CoreDNS, each with one thread on the same processor.
 */
import { answered } from '../test/kit/child.ts';
import { freshNames, loadInTurn } from './kit/dnsperf.ts';
import {
  bindForwarder,
  coredns,
  corednsProgram,
  dnsdist,
  ndots,
  need,
  printLoads,
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
const upstream = wildcardUpstream(folder, 5400, 1);
await answered(5400, 'probe.bench.');
const corefile = (port: number, more: string): string =>
  `.:${port} {\n    bind 127.0.0.1\n    errors\n    prometheus 127.0.0.1:${port + 1}\n    forward . 127.0.0.1:5400\n${more}}\n`;
const program = corednsProgram();
const servers = {
  ndots: { port: 5410, child: ndots(corefile(5410, ''), folder, { cpu: 0 }) },
  'ndots, cache': {
    port: 5412,
    child: ndots(corefile(5412, '    cache 30\n'), folder, { cpu: 0 }),
  },
  dnsdist: { port: 5420, child: dnsdist(folder, 5420, 5400, 0) },
  bind: { port: 5430, child: bindForwarder(folder, 5430, 5400, 0) },
  ...(program !== null && {
    coredns: { port: 5440, child: coredns(program, corefile(5440, ''), folder, 0) },
    'coredns, cache': {
      port: 5442,
      child: coredns(program, corefile(5442, '    cache 30\n'), folder, 0),
    },
  }),
};
for (const { port, child } of Object.values(servers)) {
  await answered(port, 'probe.bench.').catch((error: Error) => {
    throw new Error(`${child.name}: ${error.message}\n${child.output()}`);
  });
}
const middle = loadInTurn(servers, {
  rounds,
  seconds: runSeconds,
  outstanding: 200,
  names: freshNames(folder, smoke ? 40_000 : 400_000),
});
console.log(
  `peers: dnsdist ${versionOf('dnsdist', '--version')}; ${versionOf('named', '-v')}; upstream ${versionOf('unbound', '-V')}${program === null ? '' : `; ${versionOf(program, '-version')}`}`,
);
printLoads(middle);
const cpu = (name: string): number => middle[name]?.cpuMicros ?? NaN;
console.log(
  `CPU per query, ndots : dnsdist            ${ratio(cpu('ndots'), cpu('dnsdist'))}   (goal ≤ 1.1)`,
);
console.log(
  `CPU per query, ndots with cache : without ${ratio(cpu('ndots, cache'), cpu('ndots'))}   (goal ≤ 1.25)`,
);
console.log(`CPU per query, ndots : bind               ${ratio(cpu('ndots'), cpu('bind'))}`);
if (program !== null) {
  console.log(
    `CPU per query, coredns : ndots            ${ratio(cpu('coredns'), cpu('ndots'))}   (goal ≥ 2.2)`,
  );
  console.log(
    `the same, both with cache                 ${ratio(cpu('coredns, cache'), cpu('ndots, cache'))}`,
  );
}
await Promise.all([upstream.stop(), ...Object.values(servers).map(({ child }) => child.stop())]);
process.exit(0);
