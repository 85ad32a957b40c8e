/**
 * Forwarded cache misses. Every query has a different name, and the upstream is a local Unbound that answers
 * everything. ndots runs with and without a cache. It is compared with dnsdist, BIND (forward only) and CoreDNS, each
 * with one thread on the same CPU. dnsdist runs both with one port (its default) and with as many ports as ndots. There
 * are many short rounds, each with its own ratios.
 */
import { answered } from '../test/kit/child.ts';
import { freshNames, loadInTurn } from './kit/dnsperf.ts';
import { beside, figureOf, smoke } from './kit/figures.ts';
import {
  bindForwarder,
  coredns,
  corednsProgram,
  dnsdist,
  ndots,
  need,
  printLoads,
  versionOf,
  wildcardUpstream,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'unbound', 'dnsdist', 'named', 'taskset');
const directory = workDirectory();
const upstream = wildcardUpstream(directory, 5400, 1);
await answered(5400, 'probe.bench.');
const corefile = (port: number, more: string): string =>
  `.:${port} {\n    bind 127.0.0.1\n    errors\n    prometheus 127.0.0.1:${port + 1}\n    forward . 127.0.0.1:5400\n${more}}\n`;
const program = corednsProgram();
const servers = {
  ndots: { port: 5410, child: ndots(corefile(5410, ''), directory, { cpu: 0 }) },
  'ndots, cache': {
    port: 5412,
    child: ndots(corefile(5412, '    cache 30\n'), directory, { cpu: 0 }),
  },
  dnsdist: { port: 5420, child: dnsdist(directory, 5420, 5400, 0) },
  'dnsdist, 256': { port: 5422, child: dnsdist(directory, 5422, 5400, 0, ', sockets=256') },
  bind: { port: 5430, child: bindForwarder(directory, 5430, 5400, 0) },
  ...(program !== null && {
    coredns: { port: 5440, child: coredns(program, corefile(5440, ''), directory, 0) },
    'coredns, cache': {
      port: 5442,
      child: coredns(program, corefile(5442, '    cache 30\n'), directory, 0),
    },
  }),
};
for (const { port, child } of Object.values(servers)) {
  await answered(port, 'probe.bench.').catch((error: Error) => {
    throw new Error(`${child.name}: ${error.message}\n${child.output()}`);
  });
}
const { middle, ratio } = loadInTurn(servers, {
  rounds: smoke ? 1 : 9,
  seconds: smoke ? 1 : 2,
  outstanding: 200,
  names: freshNames(directory, smoke ? 40_000 : 200_000),
});
beside('dnsdist', versionOf('dnsdist', '--version'));
beside('bind', versionOf('named', '-v'));
beside('unbound', versionOf('unbound', '-V'));
if (program !== null) beside('coredns', versionOf(program, '-version'));
printLoads(middle);
figureOf('CPU per query, ndots : dnsdist', ratio('ndots', 'dnsdist'), { atMost: 1.1 });
figureOf('CPU per query, ndots : dnsdist with 256 ports', ratio('ndots', 'dnsdist, 256'));
figureOf('CPU per query, ndots with cache : without', ratio('ndots, cache', 'ndots'), {
  atMost: 1.25,
});
figureOf('CPU per query, ndots : bind', ratio('ndots', 'bind'));
if (program !== null) {
  figureOf('CPU per query, coredns : ndots', ratio('coredns', 'ndots'), { atLeast: 2.2 });
  figureOf('CPU per query, coredns : ndots, with cache', ratio('coredns, cache', 'ndots, cache'));
}
await Promise.all([upstream.stop(), ...Object.values(servers).map(({ child }) => child.stop())]);
process.exit(0);
