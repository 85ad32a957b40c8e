import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { lookups, memoryOf, DNS_PODS } from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { noNode } from './node-programs.ts';
import { changedOutside, networkOutside } from './node-space.ts';

describe('a node of Kubernetes in namespaces of its own', { skip: noNode() ?? false }, () => {
  const outside = networkOutside();
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  test('the node is ready, and kubeadm has set up DNS and kube-proxy', async () => {
    const nodes = await node.kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}');
    assert.equal(nodes, 'node1');
    const rules = await node.space.must(['iptables-save', '-t', 'nat']);
    assert.match(rules, /KUBE-SVC.*kube-system\/kube-dns:dns/);
    assert.deepEqual(changedOutside(outside), []);
  });

  test('pods with glibc, musl and Go look up names', async () => {
    const found = await lookups(node);
    for (const client of ['glibc', 'musl', 'go']) {
      assert.match(found.get(`${client} web`)!, /^10\.96\.\d+\.\d+$/);
      assert.equal(found.get(`${client} www.example.com`), '192.0.2.80');
      assert.equal(found.get(`${client} nosuch`), 'not found');
    }
  });

  test('the memory of a pod can be read as its control group counts it', async () => {
    const [pod] = await node.pods('kube-system', DNS_PODS);
    const { usage, workingSet } = await memoryOf(node, pod!);
    assert.ok(workingSet > 1 && workingSet <= usage && usage < 170, `${workingSet} of ${usage}`);
  });
});
