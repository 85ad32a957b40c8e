/** An answer that is too large for UDP, and a network that lets only UDP through. */
import { clientPod, usualObjects } from '../defaults.ts';
import { blockTcp } from '../faults.ts';
import { getent, modelled, planned, type Looked } from '../lookups.ts';
import { equal, holds, within, type Act, type Captured, type Stage, type Story } from '../story.ts';

const NAME = 'large.example.com.';
/** A hundred addresses: more than the 1232 bytes that clients say they take. */
const COUNT = 100;
const rules = [
  { name: NAME, type: 'A', answer: `n=${COUNT}` },
  { name: NAME, answer: 'NODATA' },
];
const CLIENT_IP = '10.244.1.4';

/** The story. */
export const tcpBlocked: Story = {
  name: 'tcp-blocked',
  title: 'a truncated answer, and TCP that goes nowhere',
  source: 'coredns issues 4183 and 5953; docker/for-mac issue 7110',
  preconditions: [
    'a name with a hundred addresses, whose answer does not fit into 1232 bytes',
    'a firewall that lets UDP to port 53 through, and drops TCP',
  ],
  trigger: `a lookup of ${NAME}`,
  needs: [{ program: 'getent' }, { program: 'nft' }, { program: 'tcpdump' }],
  seconds: 12,
  async play(stage) {
    const settings =
      '  dnsConfig: { options: [{ name: timeout, value: "1" }, { name: attempts, value: "2" }] }';
    const objects = usualObjects() + clientPod('default', 'client', CLIENT_IP, settings);
    const lab = await stage.start({ objects, internet: rules });
    const { name: machine, node } = lab.pod('client');
    const look = (): ReturnType<Stage['capture']> =>
      stage.capture(machine, 'port 53', () => modelled(lab, stage.ndots, 'client', 'go', NAME));
    const undo = blockTcp(lab, node, CLIENT_IP, 'drop');
    const dropped = (await look()) as Captured<Looked>;
    undo();
    const undoReset = blockTcp(lab, node, CLIENT_IP, 'reject');
    const refused = (await look()) as Captured<Looked>;
    undoReset();
    const open = await getent(lab, 'client', NAME);
    const began = ({ packets }: Captured<Looked>): number =>
      packets.filter(({ text }) => text.startsWith('Flags [S],')).length;
    const flaw = (
      title: string,
      looked: Captured<Looked>,
      time: readonly [number, number],
    ): Act => ({
      kind: 'flaw',
      title,
      command: `ndots trace ${NAME} --client go`,
      packets: looked.packets,
      facts: [
        equal('Go finds the name', 'no', looked.result.ok ? 'yes' : 'no'),
        within('seconds until Go says so (timeout:1 attempts:2)', time, looked.result.seconds),
        holds('connections were begun after a truncated answer', began(looked) > 0),
      ],
    });
    return [
      flaw('TCP is dropped: all time that there is, is waited for', dropped, [1.9, 7]),
      flaw('TCP is refused: the same, at once', refused, [0, 1.8]),
      {
        kind: 'cure',
        title: 'TCP is let through',
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
    const look = (client: string, more: object = {}): Promise<Looked> =>
      planned(client, NAME, truncated, more);
    const go = await look('go');
    return [
      {
        kind: 'cure',
        title: 'TCP is open',
        command: `ndots trace ${NAME} --client go`,
        packets: go.packets,
        facts: [
          equal('addresses', COUNT, go.addresses.length),
          holds(
            'asked again over TCP',
            go.queries.some(({ protocol }) => protocol === 'tcp'),
          ),
        ],
      },
    ];
  },
};
