import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { ClusterPod, noCluster } from '../kit/cluster-pod.ts';
import { namespaceObject, serviceObject, sliceObject } from '../kit/cluster-objects.ts';
import { missing } from '../kit/dig.ts';

/** The series and labels that existing dashboards and alerts read. They must be present from the first scrape. */
const series: readonly (readonly [string, readonly string[]])[] = [
  ['coredns_build_info', ['version', 'revision', 'goversion']],
  ['coredns_panics_total', []],
  ['coredns_plugin_enabled', ['server', 'zone', 'view', 'name']],
  ['go_goroutines', []],
  ['go_threads', []],
  ['go_info', ['version']],
  ['go_gc_duration_seconds', ['quantile']],
  ['go_gc_duration_seconds_sum', []],
  ['go_memstats_alloc_bytes_total', []],
  ['go_memstats_heap_inuse_bytes', []],
  ['go_memstats_sys_bytes', []],
  ['process_cpu_seconds_total', []],
  ['process_network_receive_bytes_total', []],
  ['process_network_transmit_bytes_total', []],
  ['process_resident_memory_bytes', []],
  ['coredns_dns_requests_total', ['server', 'zone', 'view', 'proto', 'family', 'type']],
  ['coredns_dns_responses_total', ['server', 'zone', 'view', 'rcode', 'plugin']],
  ...['bucket', 'sum', 'count'].flatMap((part) => {
    const le = part === 'bucket' ? ['le'] : [];
    return [
      [`coredns_dns_request_duration_seconds_${part}`, ['server', 'zone', 'view', ...le]],
      [`coredns_dns_request_size_bytes_${part}`, ['server', 'zone', 'view', 'proto', ...le]],
      [`coredns_dns_response_size_bytes_${part}`, ['server', 'zone', 'view', 'proto', ...le]],
    ] as const;
  }),
  ['coredns_dns_do_requests_total', ['server', 'zone', 'view']],
  ['coredns_cache_entries', ['server', 'type', 'zones', 'view']],
  ['coredns_cache_requests_total', ['server', 'zones', 'view']],
  ['coredns_cache_hits_total', ['server', 'type', 'zones', 'view']],
  ['coredns_cache_misses_total', ['server', 'zones', 'view']],
  ['coredns_proxy_request_duration_seconds_bucket', ['proxy_name', 'to', 'rcode', 'le']],
  ['coredns_proxy_request_duration_seconds_count', ['proxy_name', 'to', 'rcode']],
  ['coredns_proxy_healthcheck_failures_total', ['proxy_name', 'to']],
  ['coredns_forward_healthcheck_broken_total', []],
  ['coredns_forward_max_concurrent_rejects_total', []],
  ['coredns_kubernetes_dns_programming_duration_seconds_bucket', ['service_kind', 'le']],
  ['coredns_reload_failed_total', []],
  ['coredns_reload_version_info', ['hash', 'value']],
];

describe('the metrics of the default Corefile', { skip: noCluster() }, () => {
  let cluster: ClusterPod;
  let first = '';
  let text = '';
  before(async () => {
    const objects = {
      namespaces: [namespaceObject('shop')],
      services: [serviceObject('shop', 'web', 'None', 'http:80')],
      endpointslices: [sliceObject('shop', 'web', ['10.244.1.5'], 'http:80')],
    };
    cluster = await ClusterPod.make({ objects, zone: ['www.example.test. 300 IN A 192.0.2.80'] });
    await cluster.serve('test/corefiles/kubeadm.corefile');
    first = cluster.page(':9153/metrics').body;
    for (const name of [
      'web.shop.svc.cluster.local',
      'gone.shop.svc.cluster.local',
      'www.example.test',
      'www.example.test',
      'gone.example.test',
    ]) {
      cluster.ask(name);
      cluster.ask(name, 'AAAA');
      cluster.ask(name, '+tcp');
    }
    cluster.ask('www.example.test', '+edns=0', '+dnssec');
    // The programming latency is only measured for changes after startup.
    await cluster.api({
      put: 'endpointslices',
      object: sliceObject('shop', 'web', ['10.244.1.6'], 'http:80'),
    });
    await cluster.askUntil(
      (reply) => reply.answer.some((line) => line.endsWith('10.244.1.6')),
      ['web.shop.svc.cluster.local'],
    );
    // The page is rendered at most once per second, so wait for the first one after the queries.
    for (text = first; text === first; await setTimeout(100))
      text = cluster.page(':9153/metrics').body;
  });
  after(() => cluster.end());

  for (const [name, labels] of series) {
    test(`${name}{${labels.join(',')}} is there after a few queries`, () => {
      const lines = text
        .split('\n')
        .filter((line) => line.startsWith(name) && /^[{ ]/.test(line.slice(name.length)));
      assert.ok(lines.length > 0, `no series ${name}`);
      for (const line of lines) {
        const found = [...line.matchAll(/[{,](\w+)="/g)].map((match) => match[1]!);
        assert.deepEqual(found.toSorted(), labels.toSorted(), line);
      }
    });
  }

  test('metrics without queries exist at the first scrape', () => {
    for (const name of [
      'coredns_build_info',
      'coredns_panics_total',
      'coredns_plugin_enabled',
      'coredns_reload_version_info',
      'process_resident_memory_bytes',
    ]) {
      assert.match(first, new RegExp(`^${name}[{ ]`, 'm'), name);
    }
  });

  test('the values are those of the queries', () => {
    const sum = (pattern: RegExp): number =>
      text
        .split('\n')
        .filter((line) => pattern.test(line))
        .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
    assert.equal(sum(/^coredns_dns_requests_total\{.*proto="tcp"/), 5);
    assert.equal(sum(/^coredns_dns_requests_total\{.*type="AAAA"/), 5);
    assert.ok(sum(/^coredns_dns_responses_total\{.*rcode="NXDOMAIN"/) >= 6);
    assert.ok(sum(/^coredns_cache_hits_total\{.*type="success"/) >= 2);
    assert.equal(sum(/^coredns_dns_do_requests_total\{/), 1);
    assert.match(text, /^coredns_dns_requests_total\{.*family="1"/m);
    assert.match(text, /server="dns:\/\/:53"/);
  });

  test('promtool reports nothing', (t) => {
    const gone = missing('promtool');
    if (gone !== null) return t.skip(gone);
    for (const body of [first, text]) {
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
        input: body,
        encoding: 'utf8',
      });
      assert.equal(stdout + stderr, '');
      assert.equal(status, 0);
    }
  });

  test('a scraper that requests compression or OpenMetrics gets readable text', () => {
    const curl = (...words: string[]): string =>
      cluster.node.exec('curl', '-s', ...words, 'http://172.17.0.2:9153/metrics');
    assert.match(curl('--compressed'), /^coredns_build_info\{/m);
    assert.match(
      curl(
        '-H',
        'accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5',
      ),
      /^coredns_build_info\{/m,
    );
  });
});
