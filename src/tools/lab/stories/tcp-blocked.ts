/** A reply that is too large for UDP, in a network that blocks TCP. */
import { clientPod, usualObjects } from '../defaults.ts';
import { blockTcp } from '../faults.ts';
import { look, planned, type Looked } from '../lookups.ts';
import { equal, holds, within, type Act, type Story } from '../story.ts';

const NAME = 'large.example.com.';
/** A hundred addresses exceed the 1232 bytes that clients accept over UDP. */
const COUNT = 100;
const rules = [
  { name: NAME, type: 'A', answer: `n=${COUNT}` },
  { name: NAME, answer: 'NODATA' },
];
const CLIENT_IP = '10.244.1.4';

export const tcpBlocked: Story = {
  name: 'tcp-blocked',
  title: 'a truncated answer, and TCP is blocked',
  source: 'coredns issues 4183 and 5953; docker/for-mac issue 7110',
  preconditions: [
    'a name with a hundred addresses, whose answer does not fit into 1232 bytes',
    'a firewall that passes UDP to port 53, and drops TCP',
  ],
  trigger: `a lookup of ${NAME}`,
  needs: [{ program: 'nft' }],
  seconds: 12,
  async play(stage) {
    const settings =
      '  dnsConfig: { options: [{ name: timeout, value: "1" }, { name: attempts, value: "2" }] }';
    const objects = usualObjects() + clientPod('default', 'client', CLIENT_IP, settings);
    const lab = await stage.start({ objects, internet: rules });
    const { node } = lab.pod('client');
    const tried = (): Promise<Looked> => look(stage, lab, 'client', 'go', NAME);
    const undo = blockTcp(lab, node, CLIENT_IP, 'drop');
    const dropped = await tried();
    undo();
    const undoReset = blockTcp(lab, node, CLIENT_IP, 'reject');
    const refused = await tried();
    undoReset();
    const open = await look(stage, lab, 'client', 'glibc', NAME);
    const began = ({ packets }: Looked): number =>
      packets.filter(({ kind }) => kind === 'syn').length;
    const flaw = (title: string, looked: Looked, time: readonly [number, number]): Act => ({
      kind: 'flaw',
      title,
      command: `ndots trace ${NAME} --client go`,
      packets: looked.packets,
      facts: [
        equal(`${looked.who} finds the name`, 'no', looked.ok ? 'yes' : 'no'),
        within(`seconds until ${looked.who} says so (timeout:1 attempts:2)`, time, looked.seconds),
        holds('connections after a truncated answer', began(looked) > 0),
      ],
    });
    return [
      flaw('TCP is dropped: clients wait for their whole time-out', dropped, [1.9, 7]),
      flaw('TCP is refused: the same, at once', refused, [0, 1.8]),
      {
        kind: 'cure',
        title: 'TCP passes',
        command: `getent ahosts ${NAME}`,
        packets: [],
        facts: [equal('addresses that glibc finds', COUNT, open.addresses.length)],
      },
    ];
  },
  async model() {
    const truncated = [
      { name: NAME, type: 'A', answer: `n=${COUNT} TC` },
      { name: NAME, answer: 'NODATA' },
    ];
    const refused = await planned('go', NAME, truncated, { noTcp: true });
    const go = await planned('go', NAME, truncated);
    return [
      {
        kind: 'flaw',
        title: 'TCP is refused: the failure comes at once',
        command: `ndots trace ${NAME} --client go`,
        packets: refused.packets,
        facts: [
          equal('go finds the name', 'no', refused.ok ? 'yes' : 'no'),
          within('seconds until Go reports the error', [0, 1.8], refused.seconds),
        ],
      },
      {
        kind: 'cure',
        title: 'TCP is open',
        command: `ndots trace ${NAME} --client go`,
        packets: go.packets,
        facts: [
          equal('addresses', COUNT, go.addresses.length),
          holds(
            'retried over TCP',
            go.queries.some(({ protocol }) => protocol === 'tcp'),
          ),
        ],
      },
    ];
  },
};
