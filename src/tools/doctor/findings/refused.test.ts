import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Captured } from '../../../../test/kit/packets.ts';
import type { Finding } from './finding.ts';

/** Two clients ask five names in turn. @param refusedTo the client and the name that get REFUSED */
async function refusedFor(
  refusedTo: (client: number, name: number, round: number) => boolean,
  rounds = 10,
): Promise<Finding | undefined> {
  const packets: Captured[][] = [];
  for (let round = 0; round < rounds; round++)
    for (let client = 1; client <= 2; client++)
      for (let name = 0; name < 5; name++)
        packets.push(
          asked(
            round * 1000 + client * 100 + name * 10,
            ends(`10.244.1.${client}`, 30_000 + packets.length),
            `host${name}.example${name}.com.`,
            packets.length + 1,
            { rcode: refusedTo(client, name, round) ? RCODE.REFUSED : 0 },
          ),
        );
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND4010');
}

test('names refused to one client and answered to another show a rule', async () => {
  const found = await refusedFor((client, name) => client === 1 && name < 3);
  assert.equal(found?.severity, 'critical');
  assert.match(found.seen.join(' '), /the refusals depend on the client and the name/);
  assert.match(found.why, /policy/);
  assert.doesNotMatch(found.disproved, /another client/);
});

test('if every query from a client is refused, the cause is an access rule, and no answers are mentioned', async () => {
  const found = await refusedFor(() => true);
  assert.match(found?.title ?? '', /refuses every query/);
  assert.match(found!.why, /access rule/);
  assert.match(found!.seen.join(' '), /none of their queries was answered/);
  const often = await refusedFor((_, name) => name > 0);
  assert.match(often!.seen.join(' '), /while their other queries were answered/);
});

test('names refused to each client at times show a limit, however few', async () => {
  const found = await refusedFor((_, name, round) => (round * 5 + name) % 83 === 7, 60);
  assert.equal(found?.severity, 'warning');
  assert.match(found.why, /limit/);
});
test('refusals all the time, of any name, are those of one of several servers; in a part of the time, of a limit', async () => {
  const refused = (name: number, client: number, round: number): boolean =>
    (round * 7 + name * 3 + client) % 5 < 2;
  const always = await refusedFor((client, name, round) => refused(name, client, round), 60);
  assert.match(always?.why ?? '', /several servers in turn/);
  const atTimes = await refusedFor(
    (client, name, round) => round > 20 && round < 40 && refused(name, client, round),
    60,
  );
  assert.doesNotMatch(atTimes?.why ?? '', /several servers in turn/);
  assert.match(atTimes?.why ?? '', /limit/);
});

/** An external name each half second through two DNS pods. @param isRefused by the pod or its upstream */
async function throughPods(withUpstream: boolean): Promise<Finding | undefined> {
  const packets = Array.from({ length: 60 }, (_, i): Captured[] => {
    const pod = i % 2 === 0 ? '10.244.1.3' : '10.244.2.10';
    const rcode = i % 2 === 0 ? 0 : RCODE.REFUSED;
    const [name, port] = [`host${i >> 2}.example.com.`, 20_000 + i];
    const way = { ...ends('10.244.1.21', port), to: '10.96.0.10' };
    const query = { rcode, tookMs: 2 };
    const behind = asked(i * 500 + 0.1, { ...way, to: pod }, name, i, { ...query, tookMs: 1.8 });
    const upstream = asked(i * 500 + 0.3, ends(pod, 40_000 + i, '10.0.0.2'), name, 9000 + i, {
      ...query,
      tookMs: 1,
    });
    // A name of the cluster does not go to the upstream.
    const own = asked(
      i * 500 + 100,
      ends('10.244.1.22', port, pod),
      'db.shop.svc.cluster.local.',
      i,
    );
    return [
      ...own,
      ...asked(i * 500, way, name, i, query),
      ...behind,
      ...(withUpstream ? upstream : []),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND4010');
}

test('the DNS pod that refuses, or that its upstream refuses, is named', async () => {
  const pod = await throughPods(false);
  assert.match(pod?.seen.join(' ') ?? '', /10\.244\.2\.10 refuses every query .*10\.244\.1\.3/);
  const upstream = await throughPods(true);
  assert.match(
    upstream?.seen.join(' ') ?? '',
    /10\.0\.0\.2 refuses queries for these names from 10\.244\.2\.10 but answers them for 10\.244\.1\.3/,
  );
});

test('at a DNS pod: upstreams that refuse every query are all named, and so is the pod', async () => {
  const pod = '10.17.9.3';
  const packets = Array.from({ length: 60 }, (_, i) => {
    const way = ends('10.17.4.100', 20_000 + i, pod);
    const name = `host${i >> 2}.example.com.`;
    const up = ends(pod, 40_000 + i, `10.8.0.${10 + (i % 2)}`);
    return [
      ...asked(i * 500, way, name, i, { rcode: RCODE.REFUSED, tookMs: 2 }),
      ...asked(i * 500 + 0.2, up, name, 900 + i, { rcode: RCODE.REFUSED, tookMs: 1 }),
      ...asked(i * 500 + 50, way, 'db.shop.svc.cluster.local.', 500 + i),
    ];
  });
  const [first] = (await examine(inOrder(packets))).findings;
  assert.equal(first?.title, 'The upstreams of a DNS pod refuse all its queries');
  assert.match(
    first.seen.join(),
    /10\.8\.0\.1\d, 10\.8\.0\.1\d refused every query from 10\.17\.9\.3/,
  );
});

test('a limit refuses a client names that it answers at other times: not a rule', async () => {
  const found = await refusedFor(
    (client, name, round) =>
      (client === 1 && name === 4) || (round * 7 + name * 3 + client) % 5 < 2,
    60,
  );
  assert.doesNotMatch(found?.why ?? '', /A rule refuses/);
});

/**
 * One pod asks for one external name: some queries are refused at once, some answered after seconds.
 * @param quick another external name that is answered at once
 */
async function behindFullLimit(quick: boolean): Promise<Finding | undefined> {
  const ask = (ms: number, i: number, name: string, more: Parameters<typeof asked>[4]) =>
    asked(ms, ends('10.244.1.61', 30_000 + i), name, i, more);
  const packets = Array.from({ length: 40 }, (_, i) => [
    ...ask(
      i * 4000,
      4 * i,
      'api.github.com.',
      i % 4 === 0 ? { tookMs: 3000 } : { rcode: 5, tookMs: 0.4 },
    ),
    ...ask(i * 4000 + 500, 4 * i + 1, 'db.shop.svc.cluster.local.', {}),
    ...(quick ? ask(i * 4000 + 600, 4 * i + 2, 'www.example.com.', {}) : []),
  ]);
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND4010');
}

test('a limit that other clients use up: the refused name is itself slow, and hardly any query waits', async () => {
  const found = await behindFullLimit(false);
  assert.match(found?.title ?? '', /limit on waiting queries/);
  assert.match(found!.seen.join(' '), /At most 2 queries.*Other clients/);
  assert.doesNotMatch((await behindFullLimit(true))?.seen.join(' ') ?? '', /Other clients/);
});

test('a server to which only the names of one zone go, and which refuses them, is the upstream of a stub zone', async () => {
  const NODE = '10.0.1.17';
  const packets = Array.from({ length: 60 }, (_, i) => [
    ...asked(i * 500, ends(NODE, 20_000 + i, '10.0.3.9'), `db${i % 3}.consul.internal.`, i + 1, {
      rcode: RCODE.REFUSED,
    }),
    ...asked(i * 500 + 100, ends(NODE, 30_000 + i, '10.0.0.2'), `n${i % 5}.example.com.`, i + 1),
    // What the pods' search path leaves at its end.
    ...asked(i * 500 + 200, ends(NODE, 40_000 + i, '10.0.0.2'), 'payments.shop.', i + 1, {
      rcode: RCODE.NXDOMAIN,
    }),
  ]);
  const { findings } = await examine(inOrder(packets));
  const [first] = findings;
  assert.equal(first?.code, 'ND4010');
  assert.match(first.title, /names in consul\.internal are forwarded/);
  assert.doesNotMatch(`${first.why} ${first.fix.join(' ')}`, /resolv\.conf/);
});

test('if a zone’s server answers one DNS pod and refuses another, the client is the reason', async () => {
  const [refused, served, server] = ['10.20.64.17', '10.20.1.200', '10.20.0.53'] as const;
  const packets = Array.from({ length: 60 }, (_, i) => {
    const name = `db${i % 3}.acme.corp.`;
    return [
      ...asked(i * 500, ends('10.20.64.40', 20_000 + i, refused), name, i, {
        rcode: RCODE.REFUSED,
      }),
      ...asked(i * 500 + 0.2, ends(refused, 30_000 + i, server), name, 500 + i, {
        rcode: RCODE.REFUSED,
      }),
      ...asked(i * 500 + 50, ends(served, 30_000 + i, server), name, 700 + i),
      ...asked(
        i * 500 + 70,
        ends(refused, 40_000 + i, '10.0.0.2'),
        `n${i % 5}.example.com.`,
        900 + i,
      ),
      ...asked(
        i * 500 + 90,
        ends('10.20.64.40', 50_000 + i, refused),
        'db.shop.svc.cluster.local.',
        i,
      ),
    ];
  });
  const [first] = (await examine(inOrder(packets))).findings;
  assert.equal(first?.code, 'ND4010');
  assert.match(first.seen.join(), /from 10\.20\.64\.17 but answers them for 10\.20\.1\.200/);
});
