import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { seededRandom } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { TYPE } from '../../src/server/wire/iana.ts';
import { scriptedNetwork, type Answer, type Asked } from '../kit/upstream.ts';
import { makeWorld, type World } from '../kit/world.ts';

/*
 * The incident "DNS issues in Kubernetes". `curl https://api.twilio.com` fails intermittently, because one of the
 * search names gives NXDOMAIN for A and NOERROR for AAAA. The A records have a TTL of 8 s, and the cache is set to 30
 * s. The AAAA answer is a CNAME without an address, with 20 s. autopath mistakes the client for a pod that had the same
 * address earlier.
 */

const directories: string[] = [];
after(() => directories.forEach((directory) => rmSync(directory, { recursive: true })));

interface PodSpec {
  readonly name: string;
  readonly namespace: string;
  readonly ip: string;
  readonly phase?: string;
}

const manifest = ({ name, namespace, ip, phase = 'Running' }: PodSpec): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace },
  spec: { containers: [] },
  status: { phase, podIP: ip, podIPs: [{ ip }] },
});

const namespaces = ['default', 'sre', 'argo-events'].map((name) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
}));

class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'ndots-autopath-'));
  #writes = 0;

  constructor(pods: readonly PodSpec[]) {
    directories.push(this.path);
    this.write(pods);
  }

  write(pods: readonly PodSpec[]): void {
    const items = [...namespaces, ...pods.map(manifest)];
    // Trailing blanks give each of the file's states a different size, in case their timestamps are the same.
    const padding = ' '.repeat(this.#writes++ % 97);
    writeFileSync(
      join(this.path, 'cluster.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) + padding,
    );
  }
}

const soa = '. 60 SOA a.root-servers.net. nstld.example. 1 1800 900 604800 60';
const nxdomain: Answer = { rcode: 'NXDOMAIN', authority: [soa] };

function internet({ name, type }: Asked): Answer {
  if (name !== 'api.twilio.com.') return nxdomain;
  if (type === TYPE.A)
    return { answer: ['@ 8 CNAME edge.twilio.com.', 'edge.twilio.com. 8 A 18.208.54.140'] };
  return {
    answer: ['@ 20 CNAME edge.twilio.com.'],
    authority: ['twilio.com. 20 SOA ns.twilio.com. h.twilio.com. 1 1 1 1 20'],
  };
}

const corefile = (autopath: string, directory: string): string => `.:53 {
  errors
  ${autopath} {
    search eu-west-1.compute.internal
  }
  cache 30
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    manifests ${directory}
    pods verified
    fallthrough in-addr.arpa ip6.arpa
  }
  forward . 192.0.2.53
}`;

interface Client {
  readonly ip: string;
  readonly search: readonly string[];
}

const tail = ['svc.cluster.local', 'cluster.local', 'eu-west-1.compute.internal'];

interface Step {
  readonly name: string;
  readonly a: string;
  readonly aaaa: string;
}

const rcodes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'];

/** A resolver's lookup: it queries both types of each search name at once until a name exists. */
async function lookUp(
  world: World,
  client: Client,
  host: string,
  between = (): Promise<void> => Promise.resolve(),
): Promise<Step[]> {
  const steps: Step[] = [];
  for (const domain of [...client.search, '']) {
    const name = domain === '' ? `${host}.` : `${host}.${domain}.`;
    const first = world.ask(`${name} A`, { client: client.ip });
    await between();
    const [a, aaaa] = await Promise.all([first, world.ask(`${name} AAAA`, { client: client.ip })]);
    steps.push({ name, a: rcodes[a.rcode]!, aaaa: rcodes[aaaa.rcode]! });
    if (a.answer.some(({ type }) => type === TYPE.A)) break;
  }
  return steps;
}

/** The two types disagree on whether the name exists: one returns NXDOMAIN and the other an answer. */
function disagrees({ a, aaaa }: Step): boolean {
  return (a === 'NXDOMAIN' && aaaa === 'NOERROR') || (a === 'NOERROR' && aaaa === 'NXDOMAIN');
}

const forms = ['autopath @kubernetes', 'autopath @name'];
const address = '100.104.247.253';

describe('over three hours, with a stale pod of the same address and two clients of which one has a wrong search path', () => {
  for (const form of forms) {
    test(`A and AAAA agree about the existence of every name: ${form}`, async () => {
      const directory = new Folder([
        { name: 'webhook-j78g2', namespace: 'argo-events', ip: address, phase: 'Failed' },
        { name: 'webhook-mx991', namespace: 'argo-events', ip: address, phase: 'Succeeded' },
        { name: 'testing7', namespace: 'default', ip: address },
        { name: 'test2', namespace: 'sre', ip: '100.104.247.9' },
      ]);
      const clock = new VirtualClock();
      const network = scriptedNetwork(clock, internet);
      const world = await makeWorld(corefile(form, directory.path), { clock, network });
      const clients: readonly Client[] = [
        { ip: address, search: ['default.svc.cluster.local', ...tail] },
        // A pod in the sre namespace, but with default's search path.
        { ip: '100.104.247.9', search: ['default.svc.cluster.local', ...tail] },
        { ip: '100.104.200.1', search: ['gone.svc.cluster.local', ...tail] },
      ];
      let lookups = 0;
      for (let second = 0; second < 3 * 3600; second += 5, lookups++) {
        for (const client of clients) {
          const steps = await lookUp(world, client, 'api.twilio.com');
          assert.deepEqual(steps.filter(disagrees), [], `second ${second}, client ${client.ip}`);
          const last = steps.at(-1)!;
          assert.equal(last.a, 'NOERROR');
          if (client === clients[0])
            assert.equal(steps.length, 1, 'the pod with the right search path is spared the walk');
        }
        await clock.advance(5000);
      }
      assert.equal(lookups, 2160);
      await world.close();
    });
  }
});

test('by name, every client gets the same answers, whichever pod it seems to be', async () => {
  const directory = new Folder([{ name: 'other', namespace: 'sre', ip: address }]);
  const clock = new VirtualClock();
  const world = await makeWorld(corefile('autopath @name', directory.path), {
    clock,
    network: scriptedNetwork(clock, internet),
  });
  for (const type of ['A', 'AAAA']) {
    const question = `api.twilio.com.default.svc.cluster.local. ${type}`;
    const replies = [];
    for (const client of [address, '10.9.9.9', '192.0.2.1']) {
      const { rcode, answer } = await world.ask(question, { client });
      assert.equal(rcode, 0);
      replies.push(answer);
    }
    assert.deepEqual(replies[1], replies[0]);
    assert.deepEqual(replies[2], replies[0]);
  }
  await world.close();
});

describe('when pods come and go between the two queries, and the upstream flaps, fails or hangs for one type', () => {
  for (const form of forms) {
    test(`no name exists for one type only: ${form}`, async () => {
      const random = seededRandom(20190530);
      const pods: readonly PodSpec[] = [{ name: 'testing7', namespace: 'default', ip: address }];
      const directory = new Folder(pods);
      const clock = new VirtualClock();
      const weather = { exists: true, brokenType: 0, how: 'SERVFAIL' };
      const network = scriptedNetwork(clock, (asked) => {
        if (asked.type === weather.brokenType) {
          return weather.how === 'timeout'
            ? { fail: 'timeout' }
            : { rcode: weather.how, authority: [soa] };
        }
        return weather.exists ? internet(asked) : nxdomain;
      });
      const world = await makeWorld(corefile(form, directory.path), { clock, network });
      const client: Client = { ip: address, search: ['default.svc.cluster.local', ...tail] };
      let known = true;
      const found = new Map<string, number>();
      for (let round = 0; round < 600; round++) {
        if (random.integer(3) === 0) weather.exists = !weather.exists;
        weather.brokenType = [0, 0, TYPE.A, TYPE.AAAA][random.integer(4)]!;
        weather.how = ['SERVFAIL', 'REFUSED', 'timeout', 'NXDOMAIN'][random.integer(4)]!;
        const flips = random.integer(4) === 0;
        const steps = await lookUp(world, client, 'api.twilio.com', async () => {
          if (!flips) return;
          known = !known;
          directory.write(known ? pods : []);
          // The directory is checked once a second.
          await clock.advance(1000);
        });
        const searched = steps.filter(({ name }) => name !== 'api.twilio.com.');
        assert.deepEqual(
          searched.filter(disagrees),
          [],
          `round ${round}: ${JSON.stringify(weather)}`,
        );
        for (const { a, aaaa } of searched)
          found.set(`${a}/${aaaa}`, (found.get(`${a}/${aaaa}`) ?? 0) + 1);
        await clock.advance(1000 * random.integer(40));
      }
      // The faults had an effect: names existed, were missing, and were unknown.
      assert.ok((found.get('NOERROR/NOERROR') ?? 0) > 20, JSON.stringify([...found]));
      assert.ok((found.get('NXDOMAIN/NXDOMAIN') ?? 0) > 20, JSON.stringify([...found]));
      assert.ok(
        [...found.keys()].some((pair) => pair.includes('SERVFAIL')),
        JSON.stringify([...found]),
      );
      await world.close();
    });
  }
});
