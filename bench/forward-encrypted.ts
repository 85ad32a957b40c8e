/**
 * Forwarding over TLS and HTTPS to a local Unbound that answers everything, with clients that use UDP. Compared with
 * dnsdist and CoreDNS, each with one thread on the same CPU.
 */
import { answered } from '../test/kit/child.ts';
import { freshNames, loadInTurn } from './kit/dnsperf.ts';
import { beside, figure, smoke } from './kit/figures.ts';
import {
  certificateIn,
  coredns,
  corednsProgram,
  dnsdist,
  ndots,
  need,
  printLoads,
  rounds,
  runSeconds,
  versionOf,
  wildcardUpstream,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'unbound', 'dnsdist', 'taskset');
const directory = workDirectory();
const certificate = `${certificateIn(directory)}.crt`;
const upstream = wildcardUpstream(directory, 5400, 1, { tls: 5453, https: 5443 });
await answered(5400, 'probe.bench.');
const corefile = (port: number, to: string): string =>
  `.:${port} {\n    bind 127.0.0.1\n    errors\n    prometheus 127.0.0.1:${port + 1}\n    forward . ${to} {\n        tls ${certificate}\n        tls_servername dns.example\n    }\n}\n`;
const overTls = 'tls://127.0.0.1:5453';
const overHttps = 'https://127.0.0.1:5443';
const tls = `, tls="openssl", caStore="${certificate}", subjectName="dns.example"`;
const program = corednsProgram();
const servers = {
  'ndots, tls': { port: 5410, child: ndots(corefile(5410, overTls), directory, { cpu: 0 }) },
  'dnsdist, tls': { port: 5420, child: dnsdist(directory, 5420, 5453, 0, tls) },
  'ndots, https': { port: 5412, child: ndots(corefile(5412, overHttps), directory, { cpu: 0 }) },
  'dnsdist, https': {
    port: 5422,
    child: dnsdist(directory, 5422, 5443, 0, `${tls}, dohPath="/dns-query"`),
  },
  ...(program !== null && {
    'coredns, tls': {
      port: 5440,
      child: coredns(program, corefile(5440, overTls), directory, 0),
    },
    'coredns, https': {
      port: 5442,
      child: coredns(program, corefile(5442, overHttps), directory, 0),
    },
  }),
};
for (const { port, child } of Object.values(servers)) {
  await answered(port, 'probe.bench.').catch((error: Error) => {
    throw new Error(`${child.name}: ${error.message}\n${child.output()}`);
  });
}
const { middle } = loadInTurn(servers, {
  rounds,
  seconds: runSeconds,
  outstanding: 200,
  names: freshNames(directory, smoke ? 40_000 : 400_000),
});
beside('dnsdist', versionOf('dnsdist', '--version'));
if (program !== null) beside('coredns', versionOf(program, '-version'));
printLoads(middle);
for (const over of ['tls', 'https']) {
  const cpu = (name: string): number => middle[`${name}, ${over}`]?.cpuMicros ?? NaN;
  figure(`CPU per query over ${over}, ndots : dnsdist`, cpu('ndots') / cpu('dnsdist'));
  if (program !== null)
    figure(`CPU per query over ${over}, coredns : ndots`, cpu('coredns') / cpu('ndots'), '', {
      atLeast: 2,
    });
}
await Promise.all([upstream.stop(), ...Object.values(servers).map(({ child }) => child.stop())]);
process.exit(0);
