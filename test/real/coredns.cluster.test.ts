import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { seededRandom } from '../../src/server/base/random.ts';
import { FLAG, rcodeName, typeName, typeNumber } from '../../src/server/wire/iana.ts';
import {
  readMessage,
  writeMessage,
  type DnsRecord,
  type Message,
} from '../../src/server/wire/message.ts';
import { printRecord } from '../../src/server/wire/print.ts';
import { randomCluster } from '../conformance/random-cluster.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { freePorts } from '../kit/free-ports.ts';

/**
 * CoreDNS and ndots on the same API server, with random objects. Every name that the objects may produce is queried,
 * with many types. Differences must be listed in docs/coredns.md under "Existence". `COREDNS=PROGRAM` selects CoreDNS
 * 1.14, and `SEED` and `ROUNDS` generate other clusters.
 */
const coredns = process.env['COREDNS'];
const seed = Number(process.env['SEED'] ?? 1);
const rounds = Number(process.env['ROUNDS'] ?? 2);

const zone = 'cluster.local.';
const reverse = 'in-addr.arpa ip6.arpa';

/** The `kubernetes` directives, one server block each. */
const configurations: readonly (readonly string[])[] = [
  [],
  ['pods insecure', `fallthrough ${reverse}`],
  ['pods verified', 'endpoint_pod_names', 'ttl 30'],
  ['namespaces shop svc', 'pods insecure', 'fallthrough'],
  ['labels app=x', 'noendpoints'],
  ['namespace_labels tier=front', 'ignore empty_service'],
  ['zonal', 'pods disabled'],
];

const types = [
  'A',
  'AAAA',
  'SRV',
  'PTR',
  'TXT',
  'NS',
  'SOA',
  'CNAME',
  'MX',
  'HTTPS',
  'ANY',
] as const;

/** The rest of the internet. */
const elsewhere = (port: number): string => `.:${port} {
  bind 127.0.0.1
  template IN A ext.example.org {
    answer "{{ .Name }} 303 IN A 198.51.100.1"
  }
  template ANY ANY ext.example.org
  template ANY ANY . {
    rcode NXDOMAIN
  }
}
`;

class Asker {
  readonly #socket: Socket = createSocket('udp4');
  readonly #waiting = new Map<string, (reply: Message) => void>();
  #id = 0;

  constructor() {
    this.#socket.on('message', (bytes, { port }) => {
      const reply = readMessage(bytes);
      this.#waiting.get(`${port} ${reply.id}`)?.(reply);
    });
  }

  /** The replies for all types, in order. */
  all(port: number, name: string): Promise<Message[]> {
    return Promise.all(types.map((type) => this.ask(port, name, type)));
  }

  ask(port: number, name: string, type: string): Promise<Message> {
    const id = (this.#id = (this.#id + 1) % 65_536);
    const query = writeMessage({
      id,
      flags: FLAG.RD,
      rcode: 0,
      question: [{ name, type: typeNumber(type)!, class: 1 }],
      answer: [],
      authority: [],
      additional: [],
      edns: { udpSize: 16_384, version: 0, dnssecOk: false, options: [] },
    });
    return new Promise((resolve, reject) => {
      const key = `${port} ${id}`;
      const timer = setTimeout(() => reject(new Error(`no reply for ${name} ${type}`)), 10_000);
      this.#waiting.set(key, (reply) => {
        clearTimeout(timer);
        this.#waiting.delete(key);
        resolve(reply);
      });
      this.#socket.send(query, port, '127.0.0.1');
    });
  }

  close(): void {
    this.#socket.close();
  }
}

const skip = noApiServer() ?? (coredns === undefined ? 'COREDNS names no program' : false);

describe('CoreDNS on the same API server', { skip }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-coredns-'));
  let cluster: Cluster;
  const children: Child[] = [];
  const ports = { coredns: [] as number[], ndots: [] as number[] };
  const asker = new Asker();

  before(async () => {
    cluster = await Cluster.start();
    const { objects } = randomCluster(seededRandom(seed), zone);
    assert.deepEqual(await cluster.put(objects), []);
    for (const who of ['coredns', 'ndots'] as const) {
      ports[who] = await freePorts(configurations.length + 1);
      const beyond = ports[who].at(-1)!;
      const blocks = configurations.map(
        (properties, nth) => `.:${ports[who][nth]} {
  bind 127.0.0.1
  kubernetes ${zone} ${reverse} {
    kubeconfig ${cluster.kubeconfig('admin')}
    ${properties.join('\n    ')}
  }
  forward . 127.0.0.1:${beyond}
}
`,
      );
      const corefile = join(directory, who);
      writeFileSync(corefile, [...blocks, elsewhere(beyond)].join(''));
      const words = who === 'ndots' ? ['bin/ndots', 'serve'] : [coredns!];
      const child = start(who, [...words, '-conf', corefile]);
      children.push(child);
      await printed(child, who === 'ndots' ? /^ndots-\d/m : /^CoreDNS-\d/m, 60_000);
    }
  });

  after(async () => {
    asker.close();
    await Promise.all(children.map((child) => child.stop()));
    await cluster?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  for (let round = 0; round < rounds; round++) {
    test(`cluster ${seed + round}`, async (context) => {
      const { objects, names } = randomCluster(seededRandom(seed + round), zone);
      if (round > 0) {
        await replaceObjects(cluster);
        assert.deepEqual(await cluster.put(objects), []);
        // Once they agree on the last object, both have seen it.
        await cluster.put([last(round)]);
        await settled(asker, [...ports.coredns.slice(0, -1), ...ports.ndots.slice(0, -1)], round);
      }
      const wrong: string[] = [];
      let same = 0;
      let intended = 0;
      for (const [nth, properties] of configurations.entries()) {
        for (const name of names) {
          const [theirs, mine] = await Promise.all([
            asker.all(ports.coredns[nth]!, name),
            asker.all(ports.ndots[nth]!, name),
          ]);
          for (const [at, type] of types.entries()) {
            const one = tell(theirs[at]!);
            const two = tell(mine[at]!);
            if (one === two) same++;
            else if (isIntended(name, at, theirs, mine)) intended++;
            else
              wrong.push(
                `${properties.join('; ')} | ${name} ${type}\n  CoreDNS ${one}\n  ndots   ${two}`,
              );
          }
        }
      }
      context.diagnostic(
        `${same} replies are equal, ${intended} differ as documented, ${wrong.length} otherwise`,
      );
      assert.deepEqual(wrong.slice(0, 40), [], `${wrong.length} replies differ`);
    });
  }
});

/** A reply as text, without order, letter case and serial. */
function tell({ rcode, flags, answer, authority, additional }: Message): string {
  const lines = (section: readonly DnsRecord[]): string =>
    section
      .map((record) =>
        printRecord(record)
          .toLowerCase()
          .replace(/\s+/g, ' ')
          .replace(/(soa \S+ \S+) \d+/, '$1 serial'),
      )
      .sort()
      .join(', ');
  const aa = (flags & FLAG.AA) !== 0 ? ' aa' : '';
  return `${rcodeName(rcode)}${aa} ${lines(answer)} | ${lines(authority)} | ${lines(additional)}`;
}

const nxdomain = 3;

/**
 * True for a difference in existence that docs/coredns.md describes. CoreDNS decides separately for each type, and
 * never for SOA. Here, a name exists for all types if CoreDNS knows it for any type, and no other name exists.
 */
function isIntended(
  name: string,
  at: number,
  theirs: readonly Message[],
  mine: readonly Message[],
): boolean {
  const [one, two] = [theirs[at]!, mine[at]!];
  if (one.answer.length > 0 || two.answer.length > 0) return false;
  // The name `ns.dns` is under it.
  const known =
    name === `dns.${zone}` ||
    theirs.some(({ rcode }, nth) => rcode !== nxdomain && types[nth] !== 'SOA');
  return (two.rcode !== nxdomain) === known && one.rcode !== two.rcode;
}

/** First removes all objects from the previous round. */
async function replaceObjects(cluster: Cluster): Promise<void> {
  for (const space of ['shop', 'web', 'empty', 'svc'])
    await cluster.kubectl(
      'delete',
      'services,endpointslices,pods',
      '--all',
      '-n',
      space,
      '--grace-period=0',
      '--force',
    );
}

const last = (round: number) =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `last-${round}`, namespace: 'shop', labels: { app: 'x' } },
    spec: { clusterIP: `10.0.1.${round}`, ports: [{ port: 80 }] },
  }) as never;

async function settled(asker: Asker, ports: readonly number[], round: number): Promise<void> {
  const begin = performance.now();
  for (const port of ports) {
    for (;;) {
      const reply = await asker.ask(port, `${round}.1.0.10.in-addr.arpa.`, 'PTR');
      if (reply.answer.length > 0) break;
      if (performance.now() - begin > 30_000) {
        assert.fail(
          `port ${port} does not know the last service: ${typeName(12)} ${rcodeName(reply.rcode)}`,
        );
      }
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}
