/** Finds the pods' DNS Service in the forms that various distributions use. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../server/base/json-object.ts';
import { dnsServiceIn, selectorOf } from './dns-service.ts';

const DNS = [
  { name: 'dns', port: 53, protocol: 'UDP' },
  { name: 'dns-tcp', port: 53, protocol: 'TCP' },
];
const addon = {
  'k8s-app': 'kube-dns',
  'kubernetes.io/cluster-service': 'true',
  'kubernetes.io/name': 'CoreDNS',
};

function service(
  name: string,
  clusterIP: string,
  labels: Record<string, string>,
  ports: readonly object[] = DNS,
  created = '2026-01-01T00:00:00Z',
): JsonObject {
  return {
    metadata: { name, labels, creationTimestamp: created },
    spec: { clusterIP, clusterIPs: [clusterIP], ports, selector: { 'k8s-app': 'kube-dns' } },
  };
}

const upstream = service('kube-dns-upstream', '10.96.143.50', addon);
const metrics = service('kube-dns-metrics', '10.96.7.7', addon, [{ name: 'metrics', port: 9153 }]);
const headless = service('a-kube-dns-headless', 'None', addon);
const lan = service('a-dns-for-the-lan', '10.96.9.9', { 'k8s-app': 'kube-dns' });
const node = service('node-local-dns', '10.96.8.8', { 'k8s-app': 'node-local-dns' });
const others = [upstream, metrics, headless, lan, node, service('web', '10.96.1.1', {})];

describe('the Service that pods query', () => {
  for (const [where, dns] of [
    ['kubeadm, k3s, GKE, EKS, AKS', service('kube-dns', '10.96.0.10', addon)],
    ['RKE2', service('rke2-coredns-rke2-coredns', '10.43.0.10', addon)],
    ['OpenShift', service('dns-default', '172.30.0.10', { 'dns.operator/owning-dns': 'default' })],
    [
      'a cluster without labels',
      service('kube-dns', '10.96.0.10', {}, [{ port: 53, protocol: 'UDP' }]),
    ],
  ] as const)
    test(`${where}, among others with its label`, () => {
      assert.equal(dnsServiceIn([...others, dns]), dns);
      assert.equal(dnsServiceIn([dns, ...others]), dns);
    });

  test('in the charts of CoreDNS and ndots, with their own labels', () => {
    const chart = (name: string): JsonObject =>
      service(`release-${name}`, '10.96.0.10', {
        'app.kubernetes.io/name': name,
        'k8s-app': name,
        'kubernetes.io/cluster-service': 'true',
        'kubernetes.io/name': 'CoreDNS',
      });
    const cache = service('release-ndots-upstream', '10.96.3.3', {
      'app.kubernetes.io/name': 'ndots-node-cache',
      'k8s-app': 'ndots-node-cache',
    });
    for (const name of ['coredns', 'ndots']) {
      const dns = chart(name);
      assert.equal(dnsServiceIn([upstream, metrics, headless, node, cache, dns]), dns);
    }
  });

  test('is the one configured in kubelet, whatever its name', () => {
    const kubeDns = service('kube-dns', '10.96.0.10', addon);
    assert.equal(dnsServiceIn([...others, kubeDns], ['10.96.9.9']), lan);
    assert.equal(dnsServiceIn([...others, kubeDns], ['10.96.143.50']), upstream);
    assert.equal(dnsServiceIn([...others, kubeDns], ['169.254.20.10']), kubeDns);
  });

  test('is the older one of two similar ones', () => {
    const young = service('a', '10.96.0.11', addon, DNS, '2026-02-01T00:00:00Z');
    const old = service('b', '10.96.0.10', addon, DNS, '2026-01-01T00:00:00Z');
    assert.equal(dnsServiceIn([young, old]), old);
    assert.equal(dnsServiceIn([old, young]), old);
  });

  test('is not one with another purpose', () => {
    assert.equal(dnsServiceIn([upstream, metrics, headless, node]), null);
    assert.equal(dnsServiceIn([]), null);
  });

  test('its selector selects the DNS pods', () => {
    assert.equal(selectorOf(upstream), 'k8s-app=kube-dns');
    assert.equal(selectorOf({ spec: {} }), '');
  });
});
