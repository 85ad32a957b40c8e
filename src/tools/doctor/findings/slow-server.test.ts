import assert from 'node:assert/strict';
import { test } from 'node:test';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import type { Captured } from '../../../../test/kit/packets.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

/** A client asks for two names of a zone and one other external name. @param otherMs what that takes */
async function seenBy(otherMs: number): Promise<string> {
  const packets = Array.from({ length: 24 }, (_, nth) => {
    const isOther = nth % 3 === 2;
    const name = isOther ? 'api.stripe.com.' : `${['api', 'files'][nth % 3]!}.partner-bank.eu.`;
    const way = ends('10.244.1.21', 20_000 + nth * 7, '10.96.0.10');
    return [
      ...asked(nth * 3000, way, name, nth, { tookMs: isOther ? otherMs : 1500 }),
      ...asked(nth * 3000 + 1600, way, 'cart.shop.svc.cluster.local.', 100 + nth),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  const [first] = findings;
  assert.equal(first?.code, 'ND4003');
  return first.seen.join(' ');
}

test('a zone is slow if one other external name is quick again and again', async () => {
  assert.match(await seenBy(15), /for names in partner-bank\.eu\. took/);
  assert.doesNotMatch(await seenBy(1500), /names in partner-bank/);
});

const SERVERS = ['10.20.0.53', '10.20.0.54'];
const ZONE_NAMES = ['git', 'vault', 'ldap'].map((host) => `${host}.corp.acme.net.`);

/** At the servers of a zone: DNS pods give up after 2 s, and check servers that never answer the root. */
function atZone(tookMs: (nth: number) => number): readonly Captured[] {
  let id = 0;
  const from = (nth: number) => ['10.0.1.11', '10.0.1.12'][nth % 2]!;
  return inOrder(
    Array.from({ length: 30 }, (_, i) => {
      const [one, other] = [SERVERS[i % 2]!, SERVERS[(i + 1) % 2]!];
      const name = ZONE_NAMES[i % 3]!;
      const query = (ms: number, server: string, wanted: string, took: number | null) =>
        asked(ms, ends(from(i), 30_000 + ++id * 11, server), wanted, id * 7919, {
          tookMs: took,
          type: wanted === '.' ? 'NS' : 'A',
        });
      const ms = i * 2700;
      return [
        ...query(ms, one, name, tookMs(i)),
        ...(tookMs(i) > 2000 ? query(ms + 2000, other, name, tookMs(i + 7)) : []),
        ...[2001, 3001].flatMap((afterMs) => query(ms + afterMs, one, '.', null)),
      ];
    }),
  );
}

test('at the servers of a zone, late replies come first, and unanswered health checks are not lost names', async () => {
  const { findings } = await examine(atZone((nth) => 1200 + ((nth * 1777) % 5000)));
  const [first] = findings;
  assert.equal(first?.code, 'ND4003');
  assert.equal(first.title, 'The servers for corp.acme.net answer slowly');
  assert.match(
    first.seen.join(' '),
    /10\.20\.0\.5[34], 10\.20\.0\.5[34] .* names in corp\.acme\.net/,
  );
  assert.match(first.seen.join(' '), /none of \d+ health checks/);
  for (const code of ['ND3010', 'ND3013'])
    assert.ok(!findings.some((each) => each.code === code), code);
});

test('a quick server that never answers health checks loses no name, and nothing at random', async () => {
  const { findings } = await examine(atZone(() => 3));
  assert.deepEqual(
    findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code),
    [],
  );
});

/** At a client: of three queries for these names, two fail late. @param more other names, which are quick */
function atClient(slow: readonly string[], more: readonly string[]): readonly Captured[] {
  const client = '10.244.1.21';
  return inOrder(
    Array.from({ length: 36 }, (_, i) => {
      const way = (nth: number) => ends(client, 20_000 + i * 50 + nth);
      const ms = i * 5000;
      const fails = i % 3 > 0;
      return [
        ...['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.'].flatMap(
          (domain, nth) =>
            asked(
              ms + nth,
              way(nth),
              `${slow[Math.floor(i / 3) % slow.length]!}${domain}`,
              i * 9 + nth,
              {
                rcode: 3,
              },
            ),
        ),
        ...asked(ms + 4, way(4), slow[Math.floor(i / 3) % slow.length]!, i * 9 + 4, {
          tookMs: fails ? 4001 : 2300 + i,
          rcode: fails ? 2 : 0,
        }),
        ...asked(ms + 4400, way(5), 'cart.shop.svc.cluster.local.', i * 9 + 5),
        ...more.flatMap((name, nth) => asked(ms + 4410, way(6 + nth), name, i * 9 + 6 + nth)),
      ];
    }),
  );
}

test('names of one zone that are late or fail late show slow servers behind that zone', async () => {
  const others = ['api.stripe.com.', 'www.example.org.', 'hooks.slack.com.'];
  const [first] = (await examine(atClient(ZONE_NAMES, others))).findings;
  assert.equal(first?.code, 'ND4003');
  assert.match(first.title, /^Names in corp\.acme\.net are slow while others are quick/);
  assert.match(first.seen.join(' '), /24 more .* SERVFAIL/);
  assert.match(first.why, /behind 10\.96\.0\.10/);
});

test('if all external names are late or fail late, the upstream behind the server is slow', async () => {
  const slow = ['api.stripe.com.', 'www.example.org.', 'hooks.slack.com.', 'db.acme.net.'];
  const [first] = (await examine(atClient(slow, []))).findings;
  assert.equal(first?.code, 'ND4003');
  assert.match(first.title, /^External names are slow while cluster names are quick/);
  assert.match(first.seen.join(' '), /24 .* SERVFAIL/);
});

test('if all queried external names are in one zone, the finding names it', async () => {
  const [first] = (await examine(atClient(ZONE_NAMES, []))).findings;
  assert.equal(first?.code, 'ND4003');
  assert.match(first.title, /^Names in corp\.acme\.net are slow while cluster names are quick/);
  assert.match(first.seen.join(' '), /are all in corp\.acme\.net\. and include/);
});

/** External names in unrelated zones, and a cluster name between them. @param tookMs of external names */
async function firstFor(tookMs: (nth: number) => number, everyMs = 3000): Promise<string> {
  const packets = Array.from({ length: 40 }, (_, nth) => {
    const way = ends('10.244.1.21', 20_000 + nth * 7);
    return [
      ...asked(nth * everyMs, way, `host.zone${nth % 9}.net.`, nth, { tookMs: tookMs(nth) }),
      ...asked(nth * everyMs + 2500, way, 'cart.shop.svc.cluster.local.', 100 + nth),
    ];
  });
  const [first] = (await examine(inOrder(packets))).findings;
  return first?.title ?? '';
}

test('external names that take 2 s or hardly any time show an upstream that does not answer', async () => {
  assert.match(
    await firstFor((nth) => (nth % 2 === 0 ? 3 : 2004)),
    /^One of the upstreams does not answer/,
  );
});

test('if all of these follow a pause, an idle connection that was dropped is also possible', async () => {
  const title = await firstFor((nth) => (nth % 2 === 0 ? 3 : 2004), 6000);
  assert.match(title, /^An upstream, or an idle connection to it,/);
});

test('a slow upstream is not a dead one', async () => {
  for (const tookMs of [
    // Late by different times.
    (nth: number) => (nth % 2 === 0 ? 3 : 1200 + ((nth * 1777) % 2000)),
    // Every query is late.
    () => 2004,
  ])
    assert.doesNotMatch(await firstFor(tookMs), /does not answer/);
});

/** A DNS pod with a cache, whose upstream takes this long. Each name expires after 30 s. */
async function behindCache(upstreamMs: number) {
  const pod = '10.244.0.5';
  const packets = Array.from({ length: 400 }, (_, i) => {
    const isMiss = i % 20 === 0;
    const way = ends(`10.244.1.${i % 7}`, 20_000 + i, pod);
    const up = ends(pod, 31_000 + i, '10.20.0.2');
    const name = `h${(i / 20) | 0}.example.org.`;
    return [
      ...asked(i * 150, way, name, 100 + i, { tookMs: isMiss ? upstreamMs + 1 : 0.3 }),
      ...(isMiss ? asked(i * 150 + 0.2, up, name, 700 + i, { tookMs: upstreamMs }) : []),
      ...asked(i * 150 + 20, { ...way, fromPort: 40_000 + i }, 'db.shop.svc.cluster.local.', i),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND4003');
}

test('an upstream that takes a quarter of a second is information while no lookup takes a second', async () => {
  assert.equal((await behindCache(260))?.severity, 'info');
  assert.equal((await behindCache(1500))?.severity, 'critical');
});

test('at an upstream, one name that is slow each time while another is quick is named with its TTL', async () => {
  const [pod, upstream] = ['10.244.1.5', '10.0.0.2'];
  const rates = { name: 'rates.partner.net.', address: '192.0.2.1', ttl: 0 };
  const own = { name: 'db.shop.svc.cluster.local.', address: '10.96.3.3', server: pod };
  const all = Array.from({ length: 12 }, (_, i): Given[] => [
    { ...rates, atMs: i * 3000, server: pod, reply: { tookMs: 1301 } },
    { ...rates, atMs: i * 3000 + 1, client: pod, server: upstream, reply: { tookMs: 1300 } },
    { ...others(1)[0]!, atMs: i * 3000 + 2500, client: pod, server: upstream },
    { ...own, atMs: i * 3000 + 2600 },
  ]).flat();
  const [first] = (await examine(given(all))).findings;
  assert.equal(first?.code, 'ND4003');
  assert.match(first.title, /^rates\.partner\.net is slow while other names are quick/);
  assert.match(first.seen.join(' '), /12 of 12 .* TTL of 0 s/);
});
