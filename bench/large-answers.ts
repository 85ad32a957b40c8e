/**
 * What a question costs whose answer is large: CPU per query of one worker for names with many addresses, divided by that for a name with
 * ten, over UDP without EDNS, with EDNS, and over TCP; `hosts` and `file` beside CoreDNS, where it is installed. Then the CPU that a
 * message of 64 KiB from an upstream takes, of several made to be costly, beside one of the same size that is not.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom } from '../src/server/base/random.ts';
import { Arranger } from '../src/server/plugins/loadbalance/arranger.ts';
import { classify } from '../src/server/wire/classify.ts';
import { TYPE } from '../src/server/wire/iana.ts';
import { Reply } from '../src/server/wire/reply.ts';
import { fromUpstream } from '../src/server/wire/upstream.ts';
import { answered, type Child } from '../test/kit/child.ts';
import { aliasChain, copiedName, manyLabels, plainAddresses } from '../test/kit/costly-messages.ts';
import { load } from './kit/dnsperf.ts';
import { beside, figure } from './kit/figures.ts';
import { coredns, corednsProgram, ndots, need, smoke, versionOf, workFolder } from './kit/peers.ts';

need('dnsperf', 'taskset');
const folder = workFolder();
const sizes = smoke ? [10, 1000] : [10, 1000, 10_000];
const seconds = smoke ? 1 : 2;
const address = (i: number): string => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

const manifests = join(folder, 'manifests');
mkdirSync(manifests);
for (const size of sizes) {
  const name = `n${size}`;
  const endpoints = numbers(size).map((i) => ({
    addresses: [address(i)],
    conditions: { ready: true },
  }));
  const port = { name: 'http', protocol: 'TCP', port: 80 };
  const metadata = { namespace: 'default', name };
  const objects: object[] = [
    { kind: 'Service', apiVersion: 'v1', metadata, spec: { clusterIP: 'None', ports: [port] } },
  ];
  for (let from = 0; from < size; from += 100) {
    objects.push({
      kind: 'EndpointSlice',
      apiVersion: 'discovery.k8s.io/v1',
      metadata: {
        namespace: 'default',
        name: `${name}-${from}`,
        labels: { 'kubernetes.io/service-name': name },
      },
      addressType: 'IPv4',
      ports: [port],
      endpoints: endpoints.slice(from, from + 100),
    });
  }
  writeFileSync(
    join(manifests, `${name}.json`),
    JSON.stringify({ kind: 'List', apiVersion: 'v1', items: objects }),
  );
}
const zone = ['$ORIGIN file.test.', '@ 60 SOA ns mail 1 2 3 4 5'];
const hosts: string[] = [];
for (const size of sizes) {
  for (const i of numbers(Math.min(size, 3000))) zone.push(`n${size} 60 A ${address(i)}`);
  for (const i of numbers(Math.min(size, 1000))) hosts.push(`${address(i)} n${size}.hosts.test`);
}
writeFileSync(join(folder, 'db'), `${zone.join('\n')}\n`);
writeFileSync(join(folder, 'hosts'), `${hosts.join('\n')}\n`);

const kinds = {
  kubernetes: {
    lines: `kubernetes cluster.local in-addr.arpa {\n manifests ${manifests}\n }`,
    suffix: 'default.svc.cluster.local',
    types: ['A', 'AAAA', 'SRV', 'TXT', 'ANY', 'PTR'],
  },
  hosts: { lines: `hosts ${join(folder, 'hosts')}`, suffix: 'hosts.test', types: ['A'] },
  file: { lines: `file ${join(folder, 'db')} file.test`, suffix: 'file.test', types: ['A'] },
} as const;
const ways = {
  '512 bytes': { mode: 'udp', edns: false },
  EDNS: { mode: 'udp', edns: true },
  TCP: { mode: 'tcp', edns: false },
} as const;

let port = 5700;
const program = corednsProgram();
if (program !== null) beside('CoreDNS', versionOf(program, '-version'));

for (const [kind, { lines, suffix, types }] of Object.entries(kinds)) {
  const corefile = (at: number): string =>
    `.:${at} {\n bind 127.0.0.1\n loadbalance\n ${lines}\n}\n`;
  const servers: [string, Child, number][] = [];
  const begin = async (who: string, make: (at: number) => Child): Promise<void> => {
    const at = port++;
    servers.push([who, make(at), at]);
    await answered(at, `n10.${suffix}`);
  };
  await begin('ndots', (at) => ndots(corefile(at), folder, { cpu: 0 }));
  if (program !== null && kind !== 'kubernetes')
    await begin('CoreDNS', (at) => coredns(program, corefile(at), folder, 0));
  for (const [who, child, at] of servers) {
    for (const type of types) {
      for (const [way, { mode, edns }] of Object.entries(ways)) {
        let small = 0;
        for (const size of sizes) {
          const name =
            type === 'PTR'
              ? `${(size - 1) & 255}.${((size - 1) >> 8) & 255}.0.10.in-addr.arpa`
              : `n${size}.${suffix}`;
          const file = join(folder, 'question.txt');
          writeFileSync(file, `${name} ${type}\n`);
          const { cpuMicros, completed } = load(child, { port: at, file, seconds, mode, edns });
          if (completed === 0) {
            console.log(`${who}, ${kind}, ${type}, ${way}: dnsperf does not read replies so long`);
            continue;
          }
          if (size === 10) small = cpuMicros;
          else {
            const goal = who === 'ndots' && mode === 'udp' ? { atMost: 20 } : null;
            figure(`${who}, ${kind}, ${type}, ${way}: ${size} : 10`, cpuMicros / small, '', goal);
          }
        }
      }
    }
  }
  for (const [, child] of servers) await child.stop();
}

const arranger = new Arranger({ random: seededRandom(1), prefer: [], weights: null });
const turns = smoke ? 20 : 300;
/** CPU microseconds to read a message, judge it for the cache, and put its records into another order. */
function cpuOf(message: Uint8Array): number {
  const once = (): void => {
    const reply = fromUpstream(message);
    if (!(reply instanceof Reply)) return;
    classify(reply, TYPE.A);
    arranger.arrange(reply, TYPE.A, false);
  };
  for (let i = 0; i < turns; i++) once();
  const before = process.cpuUsage();
  for (let i = 0; i < turns; i++) once();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / turns;
}
const usual = cpuOf(plainAddresses());
figure('64 KiB of addresses from upstream', usual, 'µs');
for (const [what, message] of Object.entries({ aliasChain, copiedName, manyLabels }))
  figure(`64 KiB from upstream, ${what} : addresses`, cpuOf(message()) / usual, '', { atMost: 20 });
process.exit(0);
