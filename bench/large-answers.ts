/**
 * The cost of large replies. Measures a worker's CPU per query for names with many addresses, divided by that for a
 * name with ten. It covers UDP without EDNS, EDNS, and TCP, and compares with CoreDNS if that is installed, except for
 * `kubernetes`. Also measures the CPU time for expensive 64 KiB upstream messages, compared with an ordinary message of
 * the same size.
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
import { etcdPrograms, startEtcd } from '../test/kit/etcd.ts';
import { aliasChain, copiedName, manyLabels, plainAddresses } from '../test/kit/costly-messages.ts';
import { load } from './kit/dnsperf.ts';
import { beside, figure, smoke } from './kit/figures.ts';
import { coredns, corednsProgram, ndots, need, versionOf, workDirectory } from './kit/peers.ts';

interface Kind {
  readonly lines: string;
  readonly suffix: string;
  readonly types: readonly string[];
  /** The maximum number of records per name. If absent, the largest size is the maximum. */
  readonly most?: number;
}

need('dnsperf', 'taskset');
const directory = workDirectory();
const sizes = smoke ? [10, 1000] : [10, 1000, 10_000];
const seconds = smoke ? 1 : 2;
const address = (i: number): string => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

const manifests = join(directory, 'manifests');
mkdirSync(manifests);
const namespace = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'default' } };
writeFileSync(join(manifests, 'default.json'), JSON.stringify(namespace));
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
writeFileSync(join(directory, 'db'), `${zone.join('\n')}\n`);
writeFileSync(join(directory, 'hosts'), `${hosts.join('\n')}\n`);

const etcdProgram = etcdPrograms().at(-1);
const etcd = etcdProgram === undefined ? null : await startEtcd(etcdProgram.path);
if (etcd === null) console.log('etcd is left out: not installed (etcd-server, or ETCD=FILE)');
else {
  const AT_A_TIME = 200;
  for (const size of sizes)
    for (let from = 0; from < size; from += AT_A_TIME)
      await Promise.all(
        numbers(Math.min(AT_A_TIME, size - from)).map((i) =>
          etcd.put(`/skydns/test/etcd/n${size}/r${from + i}`, {
            host: address(from + i),
            port: 80,
          }),
        ),
      );
}
/** Every record is evaluated for each query, and a thousand of them would be unrealistic. */
const TEMPLATE_RECORDS = 100;
const templates = [10, TEMPLATE_RECORDS].map((size) => {
  const answers = numbers(size).map((i) => `  answer "{{ .Name }} 60 IN A ${address(i)}"\n`);
  return `template IN A n${size}.template.test {\n${answers.join('')} }\n`;
});

const cluster = `kubernetes cluster.local in-addr.arpa {\n manifests ${manifests}\n }`;
const kinds: Readonly<Record<string, Kind>> = {
  kubernetes: {
    lines: cluster,
    suffix: 'default.svc.cluster.local',
    types: ['A', 'AAAA', 'SRV', 'TXT', 'ANY', 'PTR'],
  },
  hosts: { lines: `hosts ${join(directory, 'hosts')}`, suffix: 'hosts.test', types: ['A'] },
  file: { lines: `file ${join(directory, 'db')} file.test`, suffix: 'file.test', types: ['A'] },
  k8s_external: {
    lines: `k8s_external external.test {\n headless\n }\n ${cluster}`,
    suffix: 'default.external.test',
    types: ['A', 'SRV'],
  },
  template: {
    lines: templates.join(' '),
    suffix: 'template.test',
    types: ['A'],
    most: TEMPLATE_RECORDS,
  },
  ...(etcd !== null && {
    etcd: {
      lines: `etcd etcd.test {\n endpoint ${etcd.endpoint}\n }`,
      suffix: 'etcd.test',
      types: ['A', 'SRV', 'TXT'],
    },
  }),
};
const ways = {
  '512 bytes': { mode: 'udp', edns: false },
  EDNS: { mode: 'udp', edns: true },
  TCP: { mode: 'tcp', edns: false },
} as const;

let port = 5700;
const program = corednsProgram();
if (program !== null) beside('CoreDNS', versionOf(program, '-version'));

for (const [kind, { lines, suffix, types, most = Infinity }] of Object.entries(kinds)) {
  const own = [...new Set(sizes.map((size) => Math.min(size, most)))];
  const corefile = (at: number): string =>
    `.:${at} {\n bind 127.0.0.1\n loadbalance\n ${lines}\n}\n`;
  const servers: [string, Child, number][] = [];
  const begin = async (who: string, make: (at: number) => Child): Promise<void> => {
    const at = port++;
    servers.push([who, make(at), at]);
    await answered(at, `n10.${suffix}`);
  };
  await begin('ndots', (at) => ndots(corefile(at), directory, { cpu: 0 }));
  if (program !== null && !lines.includes('manifests'))
    await begin('CoreDNS', (at) => coredns(program, corefile(at), directory, 0));
  for (const [who, child, at] of servers) {
    for (const type of smoke ? types.slice(0, 1) : types) {
      for (const [way, { mode, edns }] of Object.entries(ways)) {
        let small = 0;
        for (const size of own) {
          const name =
            type === 'PTR'
              ? `${(size - 1) & 255}.${((size - 1) >> 8) & 255}.0.10.in-addr.arpa`
              : `n${size}.${suffix}`;
          const file = join(directory, 'question.txt');
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

await etcd?.stop();

const arranger = new Arranger({ random: seededRandom(1), prefer: [], weights: null });
const turns = smoke ? 20 : 300;
/** The CPU time in microseconds to decode a message, check it for the cache, and reorder its records. */
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
