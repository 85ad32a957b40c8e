/**
 * The common part of the node cache stories: a cluster with a node cache, a name that shows which server
 * answered, and a stream of queries from a pod.
 */
import {
  clientPod,
  upstreamService,
  usualCorefile,
  usualNodeCorefile,
  usualObjects,
} from './defaults.ts';
import type { LabCluster } from './cluster.ts';
import { load, type LoadPlan, type LoadResult } from './load.ts';
import type { NodeCachePlan } from './node-caches.ts';
import { DNS_SERVICE } from './cluster-plan.ts';
import type { Stage } from './story.ts';
import { addressesOf, UdpClient } from './udp-client.ts';
import { pause } from './pause.ts';

/** The node that has the cache and the client. */
export const NODE: string = 'node-1';
const NAME = 'kubernetes.default.svc.cluster.local.';
const WHO = 'who.test.';
const answers = { cluster: '192.0.2.101', node: '192.0.2.102' } as const;
/** Milliseconds; the time that a node cache needs to set up its addresses. */
const TAKES_MS = 10_000;

function whoBlock(address: string, more = ''): string {
  return `who.test:53 {\n${more}    hosts {\n        ${address} who.test\n    }\n}\n`;
}

export function startWithNodeCache(stage: Stage): Promise<LabCluster> {
  return stage.start({
    objects: usualObjects() + upstreamService + clientPod('default', 'client', '10.244.1.4'),
    // The TTL is longer than any act, so a repeated query was not cached.
    corefile: `${usualCorefile.replace('ttl 30', 'ttl 600')}${whoBlock(answers.cluster)}`,
    ipv6: false,
  });
}

/** The settings of NodeLocal DNSCache: iptables rules, which stay when it dies. */
export const asNodeLocal: readonly string[] = ['-failopen=false', '-skipteardown'];

export function nodeCachePlan(lab: LabCluster, flags: readonly string[]): NodeCachePlan {
  const bind = '    bind __PILLAR__LOCAL__DNS__\n';
  return {
    corefile: `${usualNodeCorefile.replace('success 9984 30', 'success 9984 600')}${whoBlock(answers.node, bind)}`,
    service: lab.serviceAddress(DNS_SERVICE),
    upstream: lab.serviceAddress('kube-system/kube-dns-upstream'),
    // NodeLocal DNSCache leaves iptables rules behind, which its successor must find.
    rules: 'iptables',
    flags,
    known: NAME,
  };
}

/** The server that answers a pod's query to the DNS service: `node`, `cluster`, or `nobody`. */
export async function whoAnswers(lab: LabCluster): Promise<string> {
  const { name } = lab.pod('client');
  const client = await UdpClient.open(lab.network.path(name), lab.serviceAddress(DNS_SERVICE));
  const [found] = addressesOf(await client.ask(WHO, 'A', 500));
  client.close();
  return Object.entries(answers).find(([, address]) => address === found)?.[0] ?? 'nobody';
}

export async function untilNodeAnswers(lab: LabCluster): Promise<void> {
  const until = performance.now() + TAKES_MS;
  while ((await whoAnswers(lab)) !== 'node' && performance.now() < until) await pause(50);
}

/** A stream of queries from the client to the DNS service. */
export function stream(
  lab: LabCluster,
  perSecond: number,
  seconds: LoadPlan['seconds'],
  waitMs: number,
): Promise<LoadResult> {
  return load({
    namespace: lab.network.path(lab.pod('client').name),
    server: lab.serviceAddress(DNS_SERVICE),
    perSecond,
    seconds,
    waitMs,
    sockets: 32,
    name: () => NAME,
  });
}
