/** The connection table is full: packets of new connections are lost, those of old ones pass. */
import { ConntrackTable, kernelOf } from '../proxy-rules/conntrack.ts';
import { clientPod, usualObjects } from '../defaults.ts';
import { limitConnections, lostBy } from '../faults.ts';
import { equal, holds, within, type Act, type Story } from '../story.ts';
import { UdpClient, type QueryResult } from '../udp-client.ts';

const NAME = 'kubernetes.default.svc.cluster.local.';
const ROOM = 20;
const NEW = 60;
/** The size of the table on Datadog's nodes, and their query rate when it was full. */
const ENTRIES = 131_072;

export const tableFull: Story = {
  name: 'table-full',
  title: 'the connection table is full',
  source: 'Kubernetes DNS horror stories (Datadog); kubernetes-on-aws issue 1244',
  preconditions: [
    'every UDP query has its own source port, and so an entry in the connection table',
    'entries stay for 30 s after the answer, or 180 s with kernels before 5.0',
    `the table has room for ${ROOM} (the kernel’s own limit is the whole machine’s, so a rule counts in its place)`,
  ],
  trigger: `${NEW} clients ask, one after the other, while an old one goes on`,
  needs: [
    { program: 'nft' },
    { rule: '-A PREROUTING -m conntrack --ctstate NEW -j RETURN', part: 'connection tracking' },
  ],
  seconds: 6,
  async play(stage) {
    const lab = await stage.start({
      objects: usualObjects() + clientPod('default', 'client', '10.244.1.4'),
    });
    const { name: machine, node } = lab.pod('client');
    const server = lab.serviceAddress('kube-system/kube-dns');
    const namespace = lab.network.path(machine);
    const old = await UdpClient.open(namespace, server);
    await old.ask(NAME);
    const newcomers = async (): Promise<{ readonly fresh: number; readonly known: number }> => {
      let known = 0;
      const asked: Promise<QueryResult>[] = [];
      for (let index = 0; index < NEW; index++) {
        const client = await UdpClient.open(namespace, server);
        asked.push(client.ask(NAME, 'A', 700).finally(() => client.close()));
        if (index % 6 === 0 && (await old.ask(NAME, 'A', 1000)).rcode === 0) known++;
      }
      const all = await Promise.all(asked);
      return { fresh: all.filter(({ rcode }) => rcode === 0).length, known };
    };
    const undo = limitConnections(lab, node, ROOM);
    const full = await newcomers();
    const lost = lostBy(lab, node, 'full');
    undo();
    const free = await newcomers();
    old.close();
    const act = (kind: Act['kind'], title: string, facts: Act['facts']): Act => ({
      kind,
      title,
      command: `${NEW} times: dig @${server} ${NAME}`,
      packets: [],
      facts,
    });
    return [
      act('flaw', 'no room for new connections', [
        within(`of ${NEW} new clients are answered`, [1, NEW - 1], full.fresh),
        equal('answers of 10 to the old one', 10, full.known),
        within('lost packets', [NEW - ROOM - 5, NEW * 3], lost),
      ]),
      act('cure', 'there is room', [
        equal(`of ${NEW} new clients are answered`, NEW, free.fresh),
        equal('answers of 10 to the old one', 10, free.known),
      ]),
    ];
  },
  model() {
    const fill = (
      version: string,
      perSecond: number,
    ): { readonly entries: number; readonly dropped: number } => {
      const table = new ConntrackTable({
        ...kernelOf(version),
        max: ENTRIES,
        buckets: ENTRIES / 4,
      });
      let dropped = 0;
      for (let query = 0; query < perSecond * 200; query++) {
        const atMs = (query / perSecond) * 1000;
        const flow = `udp 10.244.${(query >> 15) & 255}.4:${1024 + (query & 0x7fff)} 10.96.0.10:53`;
        if (table.packet(flow, 'original', atMs) === 'dropped') dropped++;
        else table.packet(flow, 'reply', atMs + 1);
        if (query % (10 * perSecond) === 0) table.collect(atMs);
      }
      return { entries: table.size, dropped };
    };
    const rate = 1000;
    const [before, after] = [fill('4.19', rate), fill('5.4', rate)];
    const acts: readonly Act[] = [
      {
        kind: 'flaw',
        title: 'a kernel before 5.0: an entry stays for 180 s after the answer',
        command: `${rate} queries a second for 200 s`,
        packets: [],
        facts: [
          within('entries in the table', [ENTRIES * 0.99, ENTRIES], before.entries),
          holds('queries are lost', before.dropped > 0, `${before.dropped} lost`),
        ],
      },
      {
        kind: 'cure',
        title: 'a kernel from 5.0 on: 30 s',
        command: `${rate} queries a second for 200 s`,
        packets: [],
        facts: [
          within(
            'entries in the table (of the last 30 s, collected every 10 s)',
            [29 * rate, 41 * rate],
            after.entries,
          ),
          equal('lost queries', 0, after.dropped),
        ],
      },
    ];
    return Promise.resolve(acts);
  },
};
