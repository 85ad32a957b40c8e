import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import type { Message } from '../../wire/message.ts';
import { printMessage } from '../../wire/print.ts';
import { scriptedNetwork } from '../../../../test/kit/upstream.ts';
import { makeWorld, type AskOptions, type World } from '../../../../test/kit/world.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-visibility-'));
after(() => rmSync(directory, { recursive: true }));

const namespaces = ['team-a', 'team-b', 'shared', 'kube-system'];
/** Maps client addresses to namespaces; empty if the client is not a pod. */
const clients = new Map([
  ['10.244.0.1', 'team-a'],
  ['10.244.0.2', 'team-b'],
  ['10.244.0.3', 'shared'],
  ['10.244.0.4', 'kube-system'],
  ['192.0.2.9', ''],
]);

const meta = { apiVersion: 'v1' };
const objects = [
  ...namespaces.map((name) => ({ ...meta, kind: 'Namespace', metadata: { name } })),
  ...namespaces.flatMap((namespace, i) => [
    {
      ...meta,
      kind: 'Service',
      metadata: { name: 'web', namespace },
      spec: { clusterIP: `10.96.0.${i + 1}`, ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
    },
    // Leads to a service in another namespace.
    {
      ...meta,
      kind: 'Service',
      metadata: { name: 'alias', namespace },
      spec: {
        type: 'ExternalName',
        externalName: `web.${namespaces[(i + 1) % namespaces.length]}.svc.cluster.local`,
      },
    },
  ]),
  ...[
    ['there', 'web.team-b.svc.cluster.local'],
    ['nones', 'nil.team-b.svc.cluster.local'],
    ['rewritten', 'public.example.org'],
  ].map(([name, externalName]) => ({
    ...meta,
    kind: 'Service',
    metadata: { name, namespace: 'team-a' },
    spec: { type: 'ExternalName', externalName },
  })),
  ...[...clients]
    .filter(([, namespace]) => namespace !== '')
    .map(([ip, namespace]) => ({
      ...meta,
      kind: 'Pod',
      metadata: { name: 'client', namespace },
      spec: { containers: [] },
      status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
    })),
  {
    ...meta,
    kind: 'Pod',
    metadata: { name: 'proxy', namespace: 'kube-system' },
    spec: { hostNetwork: true, containers: [] },
    status: { phase: 'Running', podIP: '192.0.2.5', podIPs: [{ ip: '192.0.2.5' }] },
  },
];
writeFileSync(
  join(directory, 'objects.json'),
  JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
);

const tenants = [
  'allow from * to shared',
  'allow from kube-system to *',
  'deny from team-* @unknown to *',
];

function serve(lines: readonly string[], before = '', pods = 'verified'): Promise<World> {
  const clock = new VirtualClock();
  const soa = 'example. 60 SOA ns.example. h.example. 1 1 1 1 60';
  const network = scriptedNetwork(clock, () => ({ rcode: 'NXDOMAIN', authority: [soa] }));
  const policy = lines.length === 0 ? '' : `visibility cluster.local {\n ${lines.join('\n ')}\n }`;
  return makeWorld(
    `.:53 {
 prometheus 127.0.0.1:0
 ${before}
 ${policy}
 kubernetes cluster.local in-addr.arpa {
  manifests ${directory}
  pods ${pods}
 }
 forward . 192.0.2.53
}`,
    { clock, network },
  );
}

const from = (client: string): AskOptions => ({ client, edns: true });

describe('visibility', () => {
  test("a client's own alias to a hidden name looks like a dangling one, for every type", async () => {
    for (const answer of ['nxdomain', 'refused']) {
      const world = await serve([...tenants, `answer ${answer}`], 'cache');
      const seen = async (name: string, type: string): Promise<string> => {
        const reply = await world.ask(
          `${name}.team-a.svc.cluster.local. ${type}`,
          from('10.244.0.1'),
        );
        return printMessage({ ...reply, question: [] });
      };
      for (const type of ['A', 'AAAA', 'CNAME', 'SRV', 'TXT', 'ANY', 'HTTPS'])
        assert.equal(await seen('there', type), await seen('nones', type), type);
      assert.match(await seen('there', 'A'), /status: NOERROR/);
      await world.close();
    }
  });

  test('an alias whose target is rewritten to a hidden name reveals nothing, even from the cache', async () => {
    for (const policy of [tenants, ['deny from team-a to team-b']]) {
      const world = await serve(
        policy,
        'cache\n rewrite name exact public.example.org web.team-b.svc.cluster.local',
      );
      for (const client of ['10.244.0.4', '10.244.0.1', '10.244.0.2', '10.244.0.1']) {
        const reply = await world.ask('rewritten.team-a.svc.cluster.local. A', from(client));
        assert.ok(!reply.answer.some(({ type }) => type === TYPE.A), client);
      }
      // A client that queries the rewritten name itself is known.
      for (const [client, count] of [
        ['10.244.0.2', 1],
        ['10.244.0.1', 0],
      ] as const)
        assert.equal((await world.ask('public.example.org. A', from(client))).answer.length, count);
      await world.close();
    }
  });

  test('a namespace sees itself and whatever no line denies, and gets NXDOMAIN for the rest, with the reason', async () => {
    const world = await serve(tenants, 'cache');
    const seen = async (client: string, namespace: string): Promise<number> =>
      (await world.ask(`web.${namespace}.svc.cluster.local. A`, from(client))).rcode;
    assert.equal(await seen('10.244.0.1', 'team-a'), RCODE.NOERROR);
    assert.equal(await seen('10.244.0.1', 'team-b'), RCODE.NXDOMAIN);
    assert.equal(await seen('10.244.0.1', 'shared'), RCODE.NOERROR);
    assert.equal(await seen('10.244.0.3', 'team-b'), RCODE.NOERROR);
    assert.equal(await seen('10.244.0.4', 'team-a'), RCODE.NOERROR);
    assert.equal(await seen('192.0.2.9', 'team-a'), RCODE.NXDOMAIN);
    const denied = await world.dig('web.team-b.svc.cluster.local. AAAA', from('10.244.0.1'));
    assert.match(denied, /EDE: 18 .*not visible/);
    assert.match(denied, /SOA\s+ns\.dns\.cluster\.local\./);
    await world.clock.advance(10_000);
    assert.match(
      world.metrics(),
      /ndots_visibility_denied_total\{server="dns:\/\/:53",view=""\} 3\n/,
    );
    assert.match(world.metrics(), /ndots_visibility_top_namespaces\{namespace="team-a"\} 2\n/);
    assert.match(world.metrics(), /ndots_visibility_top_namespaces\{namespace="@unknown"\} 1\n/);
    await world.close();
  });

  test("a node is unknown regardless of its host-network pods' namespace, because tenants can send from there too", async () => {
    const world = await serve(tenants);
    for (const question of ['web.team-b.svc.cluster.local. A', '2.0.96.10.in-addr.arpa. PTR']) {
      const reply = await world.ask(question, from('192.0.2.5'));
      assert.deepEqual([reply.rcode, reply.answer.length], [RCODE.NXDOMAIN, 0]);
    }
    await world.close();
  });

  test('missing names are denied like existing ones, so a denial reveals nothing', async () => {
    const world = await serve(tenants);
    const texts = [];
    for (const name of [
      'web.team-b.svc',
      'none.team-b.svc',
      'team-b.svc',
      '1-2-3-4.team-b.pod',
      '_http._tcp.web.team-b.svc',
    ]) {
      for (const type of ['A', 'SRV', 'TXT', 'ANY', 'SOA']) {
        const reply = await world.ask(`${name}.cluster.local. ${type}`, from('10.244.0.1'));
        texts.push(printMessage({ ...reply, question: [] }).replaceAll(/Query time.*/g, ''));
      }
    }
    assert.equal(new Set(texts).size, 1);
    await world.close();
  });

  test('answer refused', async () => {
    const world = await serve([...tenants, 'answer refused']);
    const reply = await world.ask('web.team-b.svc.cluster.local. A', from('10.244.0.1'));
    assert.equal(reply.rcode, RCODE.REFUSED);
    await world.close();
  });

  test("a service's address has no name for a client that may not see it", async () => {
    const world = await serve(tenants, 'cache');
    for (const client of ['10.244.0.4', '10.244.0.1', '10.244.0.4']) {
      const reply = await world.ask('2.0.96.10.in-addr.arpa. PTR', from(client));
      assert.equal(reply.answer.length, client === '10.244.0.4' ? 1 : 0);
    }
    await world.close();
  });

  test('an alias into another namespace reveals nothing about it, whatever others queried before', async () => {
    for (const order of [
      ['10.244.0.1', '10.244.0.4'],
      ['10.244.0.4', '10.244.0.1'],
    ]) {
      const world = await serve(tenants, 'cache');
      for (const client of order) {
        const reply = await world.ask('alias.team-a.svc.cluster.local. A', from(client));
        const sees = client === '10.244.0.4';
        assert.equal(reply.rcode, RCODE.NOERROR);
        assert.equal(reply.answer.length, sees ? 2 : 0);
      }
      await world.close();
    }
  });

  test('zone transfers reveal everything, and are denied to clients that may not see everything', async () => {
    const world = await serve(tenants, 'transfer cluster.local {\n  to *\n }');
    const transfer = (client: string): Promise<Message> =>
      world.ask('cluster.local. AXFR', { client, proto: 'tcp' });
    assert.equal((await transfer('10.244.0.1')).rcode, RCODE.NXDOMAIN);
    assert.equal((await transfer('10.244.0.4')).rcode, RCODE.NOERROR);
    await world.close();
  });

  test('the search path continues past a denied name', async () => {
    const world = await serve(tenants, 'autopath @kubernetes');
    const reply = await world.ask('web.team-b.team-a.svc.cluster.local. A', from('10.244.0.1'));
    assert.equal(reply.rcode, RCODE.NXDOMAIN);
    assert.equal(reply.answer.length, 0);
    assert.equal(
      (await world.ask('web.shared.team-a.svc.cluster.local. A', from('10.244.0.1'))).answer.length,
      2,
    );
    await world.close();
  });

  test('dns64 and rewrite look up names for the client, while another server block, which may cache, does not', async () => {
    const world = await serve(
      tenants,
      'dns64 {\n  allow_ipv4\n }\n rewrite name regex (.*)\\.corp\\.test {1}.svc.cluster.local answer auto',
    );
    const own = await world.ask('web.team-a.svc.cluster.local. AAAA', from('10.244.0.1'));
    assert.deepEqual([own.rcode, own.answer.length], [RCODE.NOERROR, 1]);
    assert.equal(
      (await world.ask('web.team-b.svc.cluster.local. AAAA', from('10.244.0.1'))).rcode,
      RCODE.NXDOMAIN,
    );
    assert.equal((await world.ask('web.team-a.corp.test. A', from('10.244.0.1'))).answer.length, 1);
    assert.equal((await world.ask('web.team-b.corp.test. A', from('10.244.0.1'))).answer.length, 0);
    await world.close();
    const other = await makeWorld(
      `example.org {
 cache
 template IN A {
  answer "{{ .Name }} 60 IN CNAME web.team-b.svc.cluster.local."
 }
}
cluster.local {
 visibility {
  ${tenants.join('\n  ')}
 }
 kubernetes {
  manifests ${directory}
  pods verified
 }
}`,
    );
    for (const client of ['10.244.0.2', '10.244.0.1', '10.244.0.4'])
      assert.equal((await other.ask(`x.example.org. A`, from(client))).answer.length, 1, client);
    await other.close();
  });

  test('names outside the cluster zones are not checked', async () => {
    const world = await serve(tenants);
    const reply = await world.ask('web.team-b.svc.example.org. A', from('10.244.0.1'));
    assert.doesNotMatch(printMessage(reply), /EDE: 18/);
    await world.close();
  });

  test('names in the data of all types are checked', async () => {
    const target = 'web.team-b.svc.cluster.local.';
    const data = {
      CNAME: target,
      MX: `0 ${target}`,
      SRV: `0 0 80 ${target}`,
      NS: target,
      DNAME: target,
      SVCB: `1 ${target}`,
      AFSDB: `1 ${target}`,
      KX: `1 ${target}`,
      NAPTR: `1 1 "s" "SIP+D2U" "" ${target}`,
      RP: `. ${target}`,
      MINFO: `. ${target}`,
      RT: `1 ${target}`,
      PX: `1 . ${target}`,
      MB: target,
    };
    const templates = Object.entries(data).map(
      ([type, text]) =>
        `template IN ${type} test {\n  answer "{{ .Name }} 60 IN ${type} ${text.replaceAll('"', '\\"')}"\n }`,
    );
    const world = await serve(tenants, templates.join('\n '));
    for (const type of Object.keys(data)) {
      const seen = await world.ask(`x.test. ${type}`, from('10.244.0.2'));
      assert.equal(seen.answer.length, 1, type);
      const hidden = await world.ask(`x.test. ${type}`, from('10.244.0.1'));
      assert.deepEqual([hidden.rcode, hidden.answer.length], [RCODE.NXDOMAIN, 0], type);
    }
    await world.close();
  });

  test('report_only denies nothing and counts', async () => {
    const world = await serve([...tenants, 'report_only']);
    const reply = await world.ask('web.team-b.svc.cluster.local. A', from('10.244.0.1'));
    assert.deepEqual([reply.rcode, reply.answer.length], [RCODE.NOERROR, 1]);
    assert.match(world.metrics(), /ndots_visibility_denied_total\{[^}]*\} 1\n/);
    await world.close();
  });

  test('without watched pods no client is known, which is logged', async () => {
    const world = await serve(tenants, '', 'insecure');
    await world.clock.advance(100);
    assert.ok(world.log.some((line) => line.includes('[ERROR]') && line.includes('pods verified')));
    const reply = await world.ask('web.team-a.svc.cluster.local. A', from('10.244.0.1'));
    assert.equal(reply.rcode, RCODE.NXDOMAIN);
    await world.close();
  });

  test('errors are reported', async () => {
    for (const [line, message] of [
      ['deny team-a to *', /a line must have the form 'deny from NAMESPACE… to NAMESPACE…'/],
      ['deny from a to', /a line must have the form/],
      ['deny from Team to *', /not a namespace: "Team"/],
      ['deny from a to @unknown', /not a namespace: "@unknown"/],
      ['deny from a*b to c', /not a namespace/],
      ['answer servfail', /expected nxdomain, refused/],
    ] as const)
      await assert.rejects(serve([line]), message);
    await assert.rejects(makeWorld('. {\n visibility\n whoami\n}'), /no rule/);
  });

  test("property: a client's answer depends only on the policy, never on earlier queries of others", async () => {
    const hidden = (client: string, namespace: string): boolean =>
      namespace !== client &&
      namespace !== 'shared' &&
      (client === '' || client.startsWith('team-'));
    const plain = await serve([]);
    const worlds = [
      await serve(tenants, 'cache 3600'),
      await serve(tenants, 'cache\n autopath @name'),
    ];
    const questions = namespaces.flatMap((namespace, i) => [
      `web.${namespace}.svc.cluster.local. A`,
      `web.${namespace}.svc.cluster.local. AAAA`,
      `none.${namespace}.svc.cluster.local. A`,
      `alias.${namespace}.svc.cluster.local. A`,
      `alias.${namespace}.svc.cluster.local. CNAME`,
      `_http._tcp.web.${namespace}.svc.cluster.local. SRV`,
      `${i + 1}.0.96.10.in-addr.arpa. PTR`,
      `${namespace}.svc.cluster.local. TXT`,
    ]);
    const shown = (message: Message): readonly string[] => [
      String(message.rcode),
      ...printMessage({ ...message, edns: null, authority: [] })
        .split('\n')
        .filter((line) => line.includes('cluster.local') && !line.startsWith(';'))
        .map((line) =>
          line
            .replaceAll(/\s\d+\sIN/g, ' IN')
            .replaceAll(/\s+/g, ' ')
            .toLowerCase(),
        )
        .toSorted(),
    ];
    const step = fc.record({
      client: fc.constantFrom(...clients.keys()),
      question: fc.constantFrom(...questions),
      tcp: fc.boolean(),
      upper: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 25 }),
        fc.constantFrom(...worlds),
        async (steps, world) => {
          for (const { client, question, tcp, upper } of steps) {
            const asked = upper ? question.replace('svc', 'SVC') : question;
            const proto = tcp ? 'tcp' : 'udp';
            const reply = await world.ask(asked, { client, proto });
            const free = shown(await plain.ask(asked, { client, proto }));
            const named = [question, ...free]
              .flatMap((text) => [...text.matchAll(/([a-z-]+)\.svc\.cluster\.local/g)])
              .map(([, namespace]) => namespace!);
            if (named.some((namespace) => hidden(clients.get(client)!, namespace))) {
              const [, asked] = /([a-z-]+)\.svc\.cluster\.local/.exec(question) ?? [];
              const isAlias = asked !== undefined && !hidden(clients.get(client)!, asked);
              assert.equal(reply.rcode, isAlias ? RCODE.NOERROR : RCODE.NXDOMAIN);
              assert.deepEqual([reply.answer.length, reply.additional.length], [0, 0]);
              assert.equal(reply.flags & FLAG.TC, 0);
            } else assert.deepEqual(shown(reply), free);
          }
        },
      ),
      { numRuns: 60 },
    );
    for (const world of [plain, ...worlds]) await world.close();
  });
});
