/** Two forwarders that are each other's upstream: a query circulates until a server gives up. */
import { clientPod, INTERNET, usualCorefile, usualObjects } from '../defaults.ts';
import { equal, within, type Act, type Story } from '../story.ts';
import { UdpClient } from '../udp-client.ts';

const NAME = 'api.example.com.';
const DNS = ['kube-system/dns-1', 'kube-system/dns-2'] as const;
const IPS = ['10.244.1.53', '10.244.2.53'] as const;
const internet = [
  { name: 'api.example.com', type: 'A', answer: '203.0.113.80' },
  { name: 'api.example.com', answer: 'NODATA' },
];

/**
 * Without `loop`, which detects only loops through the server itself and only at its start, and without
 * `cache`, which would hide the number of queries.
 */
const plain = usualCorefile.replace('    loop\n', '').replace(/ {4}cache[^]*?\n {4}}\n/, '');
const to = (upstream: string): string =>
  plain.replace(`forward . ${INTERNET}`, `forward . ${upstream}`);

export const forwardLoop: Story = {
  name: 'forward-loop',
  title: 'two forwarders in a loop',
  source: 'coredns issues 2087 and 6321; kind issue 1975',
  preconditions: [
    'the cluster’s DNS server forwards to the company’s, which forwards to the cluster’s',
    'neither has the name in its cache',
  ],
  trigger: `one question for ${NAME}`,
  needs: [],
  seconds: 14,
  async play(stage) {
    const objects = usualObjects(2) + clientPod('default', 'client', '10.244.1.4');
    const lab = await stage.start({ objects, internet, corefile: plain, ipv6: false });
    const { name: machine } = lab.pod(DNS[0]);
    const play = async (
      kind: Act['kind'],
      title: string,
      second: string,
      check: (queries: number, rcode: number | null) => Act['facts'],
    ): Promise<Act> => {
      for (const [index, upstream] of [IPS[1], second].entries()) {
        await lab.stopDns(DNS[index]!);
        await lab.startDns(DNS[index]!, to(upstream));
      }
      const client = await UdpClient.open(lab.network.path(lab.pod('client').name), IPS[0]);
      const { result, packets } = await stage.capture(machine, { protocol: 'udp' }, () =>
        client.ask(NAME, 'A', 2500),
      );
      client.close();
      const queries = packets.filter(
        ({ isQuery, text }) => isQuery && text.toLowerCase().includes('api.example.com'),
      ).length;
      return {
        kind,
        title,
        command: `dig @${IPS[0]} ${NAME}`,
        packets,
        facts: check(queries, result.rcode),
      };
    };
    return [
      await play('flaw', 'each forwards to the other', IPS[0], (queries, rcode) => [
        within(
          'queries sent and received by the first one for one question',
          [8, Infinity],
          queries,
        ),
        equal('the client gets an answer', 'no', rcode === 0 ? 'yes' : 'no'),
      ]),
      await play('cure', 'the second one forwards to the internet', INTERNET, (queries, rcode) => [
        within('queries sent and received by the first one', [2, 4], queries),
        equal('the client gets an answer', 'yes', rcode === 0 ? 'yes' : 'no'),
      ]),
    ];
  },
  model: null,
};
