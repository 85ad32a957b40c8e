import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { podResolvConf, type KubeletDns, type PodDns } from './dns-policy.ts';

const kubelet: KubeletDns = {
  clusterDns: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  nodeResolvConf: 'nameserver 192.0.2.53\nsearch corp.example.\noptions edns0\noptions timeout:1\n',
};
const pod: PodDns = { namespace: 'shop', policy: 'ClusterFirst', config: null, hostNetwork: false };

function lines(changes: Partial<PodDns>, node: Partial<KubeletDns> = {}): string[] {
  return podResolvConf({ ...pod, ...changes }, { ...kubelet, ...node })
    .text.trim()
    .split('\n');
}

function warnings(changes: Partial<PodDns>, node: Partial<KubeletDns> = {}): string {
  return podResolvConf({ ...pod, ...changes }, { ...kubelet, ...node }).warnings.join('\n');
}

describe("the pod's resolv.conf", () => {
  test('ClusterFirst: cluster domains, then those of the node, and ndots:5', () => {
    assert.deepEqual(lines({}), [
      'search shop.svc.cluster.local svc.cluster.local cluster.local corp.example',
      'nameserver 10.96.0.10',
      'options ndots:5',
    ]);
  });

  test('Default: the file of the node', () => {
    const node = ['search corp.example', 'nameserver 192.0.2.53', 'options edns0 timeout:1'];
    assert.deepEqual(lines({ policy: 'Default' }), node);
  });

  test('ClusterFirst with hostNetwork is Default, ClusterFirstWithHostNet is not', () => {
    assert.deepEqual(lines({ hostNetwork: true }), lines({ policy: 'Default' }));
    assert.match(warnings({ hostNetwork: true }), /ClusterFirstWithHostNet/);
    assert.deepEqual(lines({ hostNetwork: true, policy: 'ClusterFirstWithHostNet' }), lines({}));
  });

  test('dnsConfig adds servers and domains and replaces options by name', () => {
    const config = {
      nameservers: ['10.96.0.10', '192.0.2.1'],
      searches: ['extra.example'],
      options: [{ name: 'ndots', value: '2' }, { name: 'single-request-reopen' }],
    };
    assert.deepEqual(lines({ config }), [
      'search shop.svc.cluster.local svc.cluster.local cluster.local corp.example extra.example',
      'nameserver 10.96.0.10',
      'nameserver 192.0.2.1',
      'options ndots:2 single-request-reopen',
    ]);
  });

  test('None: dnsConfig alone', () => {
    const config = { nameservers: ['192.0.2.1'], searches: [], options: [] };
    assert.deepEqual(lines({ policy: 'None', config }), ['nameserver 192.0.2.1']);
    assert.match(warnings({ policy: 'None' }), /API server rejects/);
  });

  test('more than three servers and 32 domains are truncated', () => {
    const config = {
      nameservers: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
      searches: Array.from({ length: 40 }, (_, i) => `d${i}.example`),
      options: [],
    };
    const [search = '', ...rest] = lines({ config });
    assert.equal(search.split(' ').length, 33);
    assert.equal(rest.filter((line) => line.startsWith('nameserver')).length, 3);
    assert.match(warnings({ config }), /Nameserver limits[^]*Search Line limits/);
  });

  test('a search line that musl drops causes a warning', () => {
    const searches = Array.from(
      { length: 6 },
      (_, i) => `team-${i}.some.where.at.a.company.example`,
    );
    assert.match(warnings({ config: { nameservers: [], searches, options: [] } }), /musl/);
  });

  test('an empty resolvConf setting leaves Default pods without DNS', () => {
    assert.deepEqual(lines({ policy: 'Default' }, { nodeResolvConf: null }), [
      'search .',
      'nameserver 127.0.0.1',
    ]);
    assert.equal(lines({}, { nodeResolvConf: null })[0]?.endsWith(' cluster.local'), true);
  });

  test('a kubelet without clusterDNS gives Default', () => {
    assert.deepEqual(lines({}, { clusterDns: [] }), lines({ policy: 'Default' }));
  });
});
