import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../src/server/base/json-object.ts';
import { endpointsOf } from '../../src/tools/lab/proxy-rules/endpoints.ts';
import { iptablesJumps, iptablesRules } from '../../src/tools/lab/proxy-rules/iptables.ts';
import { nftablesRules } from '../../src/tools/lab/proxy-rules/nftables.ts';
import { servicePorts } from '../../src/tools/lab/proxy-rules/service-port.ts';
import {
  defaultProxy,
  type ClusterState,
  type ProxyOptions,
} from '../../src/tools/lab/proxy-rules/traffic.ts';
import { noKubeProxy, proxyRules, type ProxiedCluster } from '../kit/kube-proxy/kube-proxy.ts';

const CLUSTERS = 400;
const nodes = ['node-1', 'node-2', 'node-3'] as const;
const zones = ['a', 'b'] as const;

/** All kinds of endpoints, services and flags that affect rules, for one address family. */
function clusters(family: 'IPv4' | 'IPv6'): fc.Arbitrary<ProxiedCluster> {
  const isIPv4 = family === 'IPv4';
  const address = (net: number, host: number): string =>
    isIPv4 ? `10.${net}.${host >> 8}.${host & 255}` : `fd00:${net}::${host.toString(16)}`;
  const range = isIPv4
    ? fc.constantFrom('192.168.7.0/24', ' 10.1.2.3/9', '0.0.0.0/0', '172.18.0.2/32')
    : fc.constantFrom('fd00:99::/64', '2001:db8::1/33', 'fd00:18::2/128');
  const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
    fc.option(value, { nil: undefined, freq: 1 });
  const endpoint = fc.record({
    host: fc.integer({ min: 1, max: 40 }),
    node: fc.option(fc.constantFrom(...nodes)),
    conditions: fc.record(
      { ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() },
      { requiredKeys: [] },
    ),
    hints: maybe(
      fc.record(
        {
          forZones: fc.array(
            fc.constantFrom(...zones).map((name) => ({ name })),
            { maxLength: 2 },
          ),
          forNodes: fc.array(
            fc.constantFrom(...nodes).map((name) => ({ name })),
            { maxLength: 2 },
          ),
        },
        { requiredKeys: [] },
      ),
    ),
  });
  const service = fc.record({
    type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer', 'ExternalName'),
    headless: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    ports: fc.constantFrom(
      ['dns/UDP', 'dns-tcp/TCP'],
      ['/TCP'],
      ['http/TCP'],
      ['same/TCP', 'x/SCTP'],
    ),
    sticky: fc.option(fc.integer({ min: 1, max: 86_400 })),
    internal: fc.constantFrom(undefined, 'Cluster', 'Local'),
    externalPolicy: fc.constantFrom(undefined, 'Cluster', 'Local'),
    externalIPs: fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 2 }),
    ingress: fc.array(
      fc.record({
        host: fc.integer({ min: 1, max: 200 }),
        ipMode: fc.constantFrom(undefined, 'VIP', 'Proxy'),
      }),
      { maxLength: 2 },
    ),
    ranges: fc.array(range, { maxLength: 3 }),
    nodePorts: fc.boolean(),
    slices: fc.array(fc.uniqueArray(endpoint, { maxLength: 5, selector: ({ host }) => host }), {
      maxLength: 2,
    }),
    extraPort: fc.boolean(),
  });
  return fc
    .record({
      mode: fc.constantFrom('iptables', 'nftables'),
      zone: fc.constantFrom('', ...zones),
      cidr: fc.boolean(),
      masqueradeAll: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
      localhost: fc.boolean(),
      all: fc.array(service, { minLength: 1, maxLength: 6 }),
    })
    .map(({ mode, zone, cidr, masqueradeAll, localhost, all }) => {
      const services: object[] = [];
      const slices: object[] = [];
      all.forEach((one, index) => {
        const name = `svc-${index}`;
        const namespace = `ns-${index % 2}`;
        const clusterIP = one.headless ? 'None' : address(96, index + 1);
        const split = one.ports.map((port) => port.split('/'));
        const isExternal = one.type !== 'ClusterIP';
        services.push({
          metadata: { namespace, name },
          spec: {
            type: one.type,
            clusterIP,
            clusterIPs: [clusterIP],
            ipFamilies: [family],
            sessionAffinity: one.sticky === null ? 'None' : 'ClientIP',
            ...(one.sticky === null
              ? {}
              : { sessionAffinityConfig: { clientIP: { timeoutSeconds: one.sticky } } }),
            internalTrafficPolicy: one.internal,
            externalTrafficPolicy: one.externalPolicy,
            healthCheckNodePort: 31_000 + index,
            externalIPs: one.externalIPs.map((host) => address(50 + index, host)),
            loadBalancerSourceRanges: one.ranges,
            ports: split.map(([portName, protocol], at) => ({
              name: portName,
              protocol,
              port: 53 + at,
              nodePort: isExternal && one.nodePorts ? 30_000 + 10 * index + at : 0,
            })),
          },
          status: {
            loadBalancer: {
              ingress:
                one.type === 'LoadBalancer'
                  ? one.ingress.map(({ host, ipMode }) => ({
                      ip: address(60 + index, host),
                      ipMode,
                    }))
                  : [],
            },
          },
        });
        // Not even kube-proxy defines the result if two slices list an address with different conditions.
        const seen = new Set<number>();
        one.slices.forEach((endpoints, at) => {
          const fresh = endpoints.filter(({ host }) => !seen.has(host));
          for (const { host } of fresh) seen.add(host);
          slices.push({
            metadata: {
              namespace,
              name: `${name}-${at}`,
              labels: { 'kubernetes.io/service-name': name },
            },
            addressType: family,
            ports: [
              ...split.map(([portName, protocol], p) => ({
                name: portName,
                protocol,
                port: 1053 + p,
              })),
              ...(one.extraPort ? [{ name: 'other', protocol: 'TCP', port: 9 }] : []),
            ],
            endpoints: fresh.map(({ host, node, conditions, hints }) => ({
              addresses: [address(244, host)],
              ...(node === null ? {} : { nodeName: node }),
              conditions,
              hints,
            })),
          });
        });
      });
      return {
        mode: mode as ProxiedCluster['mode'],
        family,
        node: 'node-1',
        nodeIP: address(18, 2),
        zone,
        clusterCIDR: cidr ? (isIPv4 ? '10.244.0.0/16' : 'fd00:244::/64') : '',
        masqueradeAll,
        // For IPv6, kube-proxy does not accept such a flag.
        localhostNodePorts: isIPv4 && localhost,
        nodePortAddresses: [],
        services,
        slices,
      };
    });
}

function stateOf({ family, services, slices }: ProxiedCluster): ClusterState {
  return {
    ports: services.flatMap((raw) => servicePorts(raw as JsonObject, family)),
    endpoints: endpointsOf(slices as readonly JsonObject[], family),
  };
}

function optionsOf(cluster: ProxiedCluster): ProxyOptions {
  const { family, node, nodeIP, zone, masqueradeAll, localhostNodePorts } = cluster;
  const clusterCIDR = cluster.clusterCIDR === '' ? null : cluster.clusterCIDR;
  return {
    ...defaultProxy,
    family,
    node,
    nodeIP,
    zone,
    masqueradeAll,
    localhostNodePorts,
    clusterCIDR,
  };
}

/**
 * Maps a chain to its rules, in order if the order matters. The order does not matter in chains that only tell services
 * apart.
 */
function iptablesChains(text: string): Map<string, string[]> {
  const chains = new Map<string, string[]>();
  let table = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('*')) table = line;
    // Counters, which some kernels print within a rule and others as a separate rule.
    if (line.includes('localhost_nps_accepted_pkts')) continue;
    const rule = line.replace(/ -m nfacct --nfacct-name \S+/, '');
    const [first = '', name = ''] = rule.split(' ');
    if (first.startsWith(':')) chains.set(`${table} ${first.slice(1)}`, []);
    if (first === '-A') chains.get(`${table} ${name}`)!.push(rule);
  }
  for (const [name, rules] of chains) {
    if (!/ KUBE-(?:SERVICES|EXTERNAL-SERVICES|NODEPORTS|PROXY-FIREWALL)$/.test(name)) continue;
    const last = rules.findLastIndex((rule) => rule.includes('must be the last rule'));
    chains.set(name, [
      ...rules.filter((_, at) => at !== last).toSorted(),
      ...(rules[last] === undefined ? [] : [rules[last]]),
    ]);
  }
  return chains;
}

/** Maps a chain, set or map to its type, its ordered rules, and its elements. */
function nftablesChains(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const at = (key: string): string[] => {
    if (!found.has(key)) found.set(key, []);
    return found.get(key)!;
  };
  for (const line of text.split('\n')) {
    const [, kind, name = '', rest = ''] =
      /^add (chain|set|map|rule|element) ip6? kube-proxy ?(\S*) ?(.*)$/.exec(line) ?? [];
    if (kind === undefined) continue;
    if (kind === 'rule') at(`chain ${name}`).push(rest);
    else if (kind === 'element') at(`elements ${name}`).push(rest);
    else if (kind === 'chain') {
      at(`chain ${name}`);
      if (rest !== '') found.set(`properties ${name}`, [rest]);
    } else found.set(`${kind} ${name}`, [rest]);
  }
  // kube-proxy creates the set of node port addresses and then immediately removes it.
  if (
    text.includes('delete set ip kube-proxy nodeport-ips') ||
    text.includes('delete set ip6 kube-proxy nodeport-ips')
  )
    found.delete('set nodeport-ips');
  for (const [key, lines] of found) if (key.startsWith('elements')) lines.sort();
  return found;
}

describe(
  'rules compared with those of a real kube-proxy',
  { skip: noKubeProxy() ?? false, timeout: 900_000 },
  () => {
    for (const family of ['IPv4', 'IPv6'] as const) {
      test(`${family}: chain by chain the same over ${CLUSTERS} random clusters`, async () => {
        const drawn = fc.sample(clusters(family), { numRuns: CLUSTERS, seed: 53 });
        const theirs = await proxyRules(drawn);
        assert.equal(theirs.length, drawn.length);
        drawn.forEach((cluster, index) => {
          const { text, error } = theirs[index]!;
          assert.equal(error, '');
          assert.ok(text.length > 100);
          const [state, options] = [stateOf(cluster), optionsOf(cluster)];
          const [want, have] =
            cluster.mode === 'iptables'
              ? [iptablesChains(text), iptablesChains(iptablesRules(state, options))]
              : [nftablesChains(text), nftablesChains(nftablesRules(state, options))];
          for (const name of new Set([...want.keys(), ...have.keys()]))
            assert.deepEqual(
              have.get(name),
              want.get(name),
              `${name} of ${JSON.stringify(cluster, null, 1)}`,
            );
        });
      });
    }

    test('packets get into its chains by the same rules', async () => {
      const [cluster] = fc.sample(clusters('IPv4'), { numRuns: 1, seed: 1 });
      const [rules] = await proxyRules([{ ...cluster!, mode: 'iptables' }]);
      const jumps = rules!.jumps ?? [];
      let table = '';
      const ours = iptablesJumps()
        .split('\n')
        .flatMap((line) => {
          if (line.startsWith('*')) table = line.slice(1);
          const [, chain, rest] = /^-I (\S+) (.*)$/.exec(line) ?? [];
          return rest === undefined ? [] : [`${table} ${chain} ${rest}`];
        });
      const theirs = jumps.map((line) => {
        const [, of, chain, list] = /^(\S+) (\S+) (.*)$/.exec(line)!;
        const words = (JSON.parse(list!) as string[]).map((word) =>
          word.includes(' ') ? `"${word}"` : word,
        );
        return `${of} ${chain} ${words.join(' ')}`;
      });
      // Each table is restored separately.
      assert.deepEqual(ours, [
        ...theirs.filter((line) => line.startsWith('filter')),
        ...theirs.filter((line) => line.startsWith('nat')),
      ]);
    });

    test('more than a thousand endpoints: comments are left out', async () => {
      const [cluster] = fc.sample(clusters('IPv4'), { numRuns: 1, seed: 2 });
      const service = {
        metadata: { namespace: 'a', name: 'b' },
        spec: {
          type: 'ClusterIP',
          clusterIP: '10.96.0.9',
          clusterIPs: ['10.96.0.9'],
          ipFamilies: ['IPv4'],
          ports: [{ name: '', protocol: 'TCP', port: 80 }],
        },
      };
      const slice = {
        metadata: { namespace: 'a', name: 'b-1', labels: { 'kubernetes.io/service-name': 'b' } },
        addressType: 'IPv4',
        ports: [{ name: '', protocol: 'TCP', port: 80 }],
        endpoints: Array.from({ length: 1001 }, (_, index) => ({
          addresses: [`10.244.${index >> 8}.${index & 255}`],
        })),
      };
      const large: ProxiedCluster = {
        ...cluster!,
        mode: 'iptables',
        services: [service],
        slices: [slice],
      };
      const [theirs] = await proxyRules([large]);
      assert.deepEqual(
        iptablesChains(iptablesRules(stateOf(large), optionsOf(large))),
        iptablesChains(theirs!.text),
      );
    });
  },
);
