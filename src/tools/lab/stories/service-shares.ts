/**
 * The path of `curl backend` to one of three pods: a name, a service's address, and rules with the probabilities
 * 1/3, 1/2 and 1.
 */
import { clientPod, usualObjects } from '../defaults.ts';
import { clusterState } from '../proxy-rules/cluster-state.ts';
import type { LabCluster } from '../cluster.ts';
import { equal, holds, within, type Fact, type Story } from '../story.ts';

const REQUESTS = 180;
const VIP = '10.3.0.116';
const pods = [4, 5, 6].map((last) => `172.17.0.${last}`);

function backend(ip: string, index: number): string {
  return `---
apiVersion: v1
kind: Pod
metadata: { namespace: critical-app, name: backend-${index + 1}, labels: { app: critical-app, role: backend } }
spec:
  nodeName: node-${(index % 2) + 1}
  containers: [{ name: nginx, ports: [{ containerPort: 80 }] }]
status: { podIP: ${ip} }
`;
}

const objects = `${usualObjects()}---
apiVersion: v1
kind: Service
metadata: { namespace: critical-app, name: backend }
spec:
  clusterIP: ${VIP}
  selector: { app: critical-app, role: backend }
  ports: [{ port: 80 }]
${pods.map(backend).join('')}${clientPod('critical-app', 'client', '172.17.0.7')}`;

/**
 * Checks that each share is near a third of all draws. The bound is five standard deviations, which one run
 * in a million exceeds.
 */
function shares(counts: readonly number[]): readonly Fact[] {
  const all = counts.reduce((sum, count) => sum + count, 0);
  const spread = 5 * Math.sqrt((2 / 9) * all);
  return counts.map((count, index) =>
    within(
      `requests that ${pods[index]} has answered`,
      [all / 3 - spread, all / 3 + spread],
      count,
    ),
  );
}

function chancesOf(lab: LabCluster, node: string): string {
  if (lab.plan.mode === 'nftables') {
    const rules = lab.network.run(node, ['nft', 'list', 'table', 'ip', 'kube-proxy']);
    const [, count = 'none'] =
      /chain service-\S*critical-app\/backend\/\S* \{[^}]*numgen random mod (\d+) map/.exec(
        rules,
      ) ?? [];
    return `one of ${count}, all alike`;
  }
  const rules = lab.network.run(node, ['iptables-save', '-t', 'nat']).split('\n');
  return rules
    .filter((line) => line.includes('critical-app/backend -> '))
    .map((line) => Number(/--probability ([\d.]+)/.exec(line)?.[1] ?? '1').toFixed(3))
    .join(' ');
}

export const serviceShares: Story = {
  name: 'service-shares',
  title: 'curl backend: from a name to one of three pods',
  source: 'Understanding how Kubernetes DNS services work (Sysdig, 2016)',
  preconditions: [
    `the service critical-app/backend has the address ${VIP}, which no machine has`,
    'the service has three pods on two nodes',
    'kube-proxy’s rules are on both nodes',
  ],
  trigger: 'curl backend, in a pod of the namespace critical-app',
  needs: [
    { program: 'curl' },

    { program: 'sh' },
    {
      rule: '-A PREROUTING -m statistic --mode random --probability 0.5 -j RETURN',
      part: 'the match "statistic"',
    },
  ],
  seconds: 8,
  async play(stage) {
    const lab = await stage.start({ objects, ipv6: false });
    const client = 'critical-app/client';
    const { name: machine, node } = lab.pod(client);
    const { result, packets } = await stage.capture(machine, { ports: [53, 80] }, () =>
      lab.execLater(client, ['curl', '-sS', '--max-time', '10', 'backend']),
    );
    const asked = packets.find(({ isQuery }) => isQuery);
    const connected = packets.find(({ kind }) => kind === 'syn');
    const chances = chancesOf(lab, node);
    const count = async (requests: number): Promise<number[]> => {
      const script = `for i in $(seq ${requests}); do curl -sS --max-time 10 http://${VIP}/; done`;
      const { stdout } = await lab.execLater(client, ['sh', '-c', script], 120_000);
      return pods.map((ip) => stdout.split('\n').filter((line) => line.endsWith(` ${ip}`)).length);
    };
    const counts = await count(REQUESTS);
    const answered = counts.reduce((sum, each) => sum + each, 0);
    // Without pods, connections to the service are refused, and not dropped.
    lab.change({
      slices: lab.objects.slices.filter((slice) => !JSON.stringify(slice).includes('"backend"')),
    });
    const refused = await lab.execLater(client, [
      'curl',
      '-sS',
      '--max-time',
      '5',
      `http://${VIP}/`,
    ]);
    return [
      {
        kind: 'cure',
        title: 'one name, one address, three pods',
        command: 'curl backend',
        packets: packets.filter(({ kind }) => kind !== 'tcp'),
        facts: [
          equal(
            'the question',
            'A? backend.critical-app.svc.cluster.local.',
            asked?.text.replace(/ \(.*/, '') ?? 'none',
          ),
          equal('address that curl connects to', `${VIP}.80`, connected?.to ?? 'nowhere'),
          holds(
            'one of the three pods answers',
            pods.some((ip) => result.stdout.trim().endsWith(` ${ip}`)),
            result.stdout.trim(),
          ),
          equal(
            'probabilities of the rules',
            stage.mode === 'nftables' ? 'one of 3, equally likely' : '0.333 0.500 1.000',
            chances,
          ),
          equal('answered requests', REQUESTS, answered),
          ...shares(counts),
        ],
      },
      {
        kind: 'flaw',
        title: 'the service has no pods left',
        command: `curl http://${VIP}/`,
        packets: [],
        facts: [
          equal('curl’s exit code (7: refused; 28: silence)', 7, refused.code ?? -1),
          within('seconds', [0, 4], refused.tookMs / 1000),
        ],
      },
    ];
  },
  async model() {
    const { manifestText } = await import('../objects.ts');
    const state = clusterState(manifestText(objects), 'IPv4');
    const endpoints =
      [...state.endpoints].find(([key]) => key.startsWith('critical-app/backend'))?.[1] ?? [];
    const { seededRandom } = await import('../../../server/base/random.ts');
    const random = seededRandom(53);
    const counts = pods.map(() => 0);
    // The kernel walks the chain in the same way: each rule draws independently.
    for (let request = 0; request < 30_000; request++) {
      const taken = endpoints.findIndex(
        (_, at) => random.integer(1_000_000) < 1_000_000 / (endpoints.length - at),
      );
      counts[taken]!++;
    }
    return [
      {
        kind: 'cure',
        title: 'the chain of kube-proxy’s rules, 30 000 times',
        command: 'curl backend',
        packets: [],
        facts: [
          equal('endpoints', pods.join(' '), endpoints.map(({ ip }) => ip).join(' ')),
          ...shares(counts),
        ],
      },
    ];
  },
};
