import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { isLink } from '../../engine/contract/plugin.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { plugins } from '../../../../test/kit/plugins.ts';

const address = '127.0.0.1:0';

/** Returns the lines of the exposition that start with `name{` or `name `. */
function lines(world: World, name: string): readonly string[] {
  return world
    .metrics()
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

function url(world: World): string {
  return `http://127.0.0.1:${world.server.httpPort(address)}/metrics`;
}

describe('prometheus', () => {
  test('a query is counted by listener, zone, transport, family and type', async () => {
    const world = await makeWorld(`example.org:53 {\n prometheus ${address}\n whoami\n}`);
    await world.ask('a.example.org. AAAA', { dnssecOk: true });
    await world.ask('a.example.org. A', { proto: 'tls', client: '2001:db8::1' });
    await world.ask('a.example.org. TLSA');
    assert.deepEqual(lines(world, 'coredns_dns_requests_total'), [
      'coredns_dns_requests_total{family="1",proto="udp",server="dns://:53",type="AAAA",view="",zone="example.org."} 1',
      'coredns_dns_requests_total{family="1",proto="udp",server="dns://:53",type="other",view="",zone="example.org."} 1',
      'coredns_dns_requests_total{family="2",proto="tcp",server="dns://:53",type="A",view="",zone="example.org."} 1',
    ]);
    assert.deepEqual(lines(world, 'coredns_dns_do_requests_total'), [
      'coredns_dns_do_requests_total{server="dns://:53",view="",zone="example.org."} 1',
    ]);
    await world.close();
  });

  test('a reply is counted by rcode and by the plugin that made it', async () => {
    const world = await makeWorld(`.:53 {\n prometheus ${address}\n any\n}`);
    await world.ask('example.org. ANY');
    await world.ask('example.org. A');
    await world.ask('example.org. A');
    assert.deepEqual(lines(world, 'coredns_dns_responses_total'), [
      'coredns_dns_responses_total{plugin="any",rcode="NOERROR",server="dns://:53",view="",zone="."} 1',
      'coredns_dns_responses_total{plugin="any",rcode="SERVFAIL",server="dns://:53",view="",zone="."} 2',
    ]);
    await world.close();
  });

  test("sizes and durations are histograms with CoreDNS's buckets", async () => {
    const world = await makeWorld(
      `.:53 {\n prometheus ${address}\n erratic {\n delay 1 20ms\n}\n}`,
    );
    await world.ask('a.example.org. A');
    const duration = lines(world, 'coredns_dns_request_duration_seconds_bucket');
    assert.equal(duration.length, 17);
    assert.match(
      duration.find((line) => line.includes('le="0.016"'))!,
      / 0$/,
    );
    assert.match(
      duration.find((line) => line.includes('le="0.032"'))!,
      / 1$/,
    );
    const [requests] = lines(world, 'coredns_dns_request_size_bytes_sum');
    const [replies] = lines(world, 'coredns_dns_response_size_bytes_sum');
    assert.match(requests!, /\{proto="udp",server="dns:\/\/:53",view="",zone="\."\} 31$/);
    assert.match(replies!, / 47$/);
    const bounds = lines(world, 'coredns_dns_response_size_bytes_bucket').map(
      (line) => /le="([^"]+)"/.exec(line)![1],
    );
    assert.deepEqual(bounds.length, 15);
    assert.ok(bounds.includes('8291.0') || bounds.includes('8291'));
    await world.close();
  });

  test('queries outside all blocks count as dropped, once', async () => {
    const world = await makeWorld(
      `a.test:53 {\n prometheus ${address}\n whoami\n}\nb.test:53 {\n prometheus ${address}\n whoami\n}`,
    );
    await world.ask('c.test. MX');
    assert.deepEqual(lines(world, 'coredns_dns_requests_total'), [
      'coredns_dns_requests_total{family="1",proto="udp",server="dns://:53",type="MX",view="",zone="dropped"} 1',
    ]);
    assert.deepEqual(lines(world, 'coredns_dns_responses_total'), [
      'coredns_dns_responses_total{plugin="",rcode="REFUSED",server="dns://:53",view="",zone="dropped"} 1',
    ]);
    await world.close();
  });

  test('an unanswered query counts as a NOERROR of size zero', async () => {
    const world = await makeWorld(`.:53 {\n prometheus ${address}\n acl {\n drop\n }\n whoami\n}`);
    assert.equal(await world.tryAsk('example.org.'), null);
    assert.match(lines(world, 'coredns_dns_responses_total')[0]!, /plugin="",rcode="NOERROR"/);
    assert.match(lines(world, 'coredns_dns_response_size_bytes_sum')[0]!, / 0$/);
    await world.close();
  });

  test('plugins in the chain are enabled, per listener and zone, and a reload changes that', async () => {
    const corefile = (rest: string): string =>
      `.:53 {\n prometheus ${address}\n reload\n ${rest}\n}`;
    const world = await makeWorld(corefile('log\n whoami'));
    const names = (): readonly string[] =>
      lines(world, 'coredns_plugin_enabled').map((line) => /name="(\w+)".* 1$/.exec(line)![1]!);
    assert.deepEqual(names(), ['log', 'prometheus', 'whoami']);
    world.setCorefile(corefile('errors\n whoami'));
    assert.ok(await world.server.reload());
    assert.deepEqual(names(), ['errors', 'prometheus', 'whoami']);
    world.setCorefile(corefile('hosts'));
    assert.ok(await world.server.reload());
    assert.deepEqual(names(), ['hosts', 'prometheus']);
    await world.close();
  });

  test('plugins that only configure or control the server are not in the chain, as in CoreDNS', () => {
    const links = new Set(plugins.filter(isLink).map(({ name }) => name));
    const onlyConfigure = ['bind', 'debug', 'multisocket', 'root', 'timeouts', 'tls'];
    const onlyLookAfter = ['health', 'on', 'pprof', 'ready', 'reload', 'sign'];
    for (const name of [...onlyConfigure, ...onlyLookAfter]) assert.ok(!links.has(name), name);
    for (const name of ['cache', 'errors', 'forward', 'kubernetes', 'log', 'prometheus'])
      assert.ok(links.has(name), name);
  });

  test('/metrics supports text and OpenMetrics, compressed on request', async () => {
    const world = await makeWorld(`.:53 {\n prometheus ${address}\n whoami\n}`);
    const text = await fetch(url(world), { headers: { 'accept-encoding': 'identity' } });
    assert.equal(text.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    assert.match(await text.text(), /^coredns_panics_total 0$/m);
    const open = await fetch(url(world), {
      headers: { accept: 'application/openmetrics-text', 'accept-encoding': 'gzip' },
    });
    assert.match(open.headers.get('content-type')!, /^application\/openmetrics-text/);
    assert.equal(open.headers.get('content-encoding'), 'gzip');
    const body = await open.bytes();
    const plain = body[0] === 0x1f ? gunzipSync(body).toString() : Buffer.from(body).toString();
    assert.match(plain, /# EOF\n$/);
    assert.equal((await fetch(url(world).replace('/metrics', '/'))).status, 404);
    await world.close();
  });

  test('an invalid address is an error', async () => {
    await assert.rejects(
      makeWorld('.:53 {\n prometheus localhost\n}'),
      /address localhost: missing port in address/,
    );
  });
});
