/**
 * The reply to a question in mixed case must have the question in the same spelling, even if it
 * comes from a cache.
 */
import { clientPod, INTERNET, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { equal, type Act, type Story } from '../story.ts';
import { UdpClient } from '../udp-client.ts';

const NAME = 'backend.datadog.service.consul.';
const TRIES = 12;
/** The upstream's replies have the question in lower case. */
const internet = [
  { name: NAME, type: 'A', answer: '10.143.10.1 lc' },
  { name: NAME, answer: 'NODATA lc' },
];

function spelled(n: number): string {
  return NAME.split('')
    .map((letter, at) => ((n * 7 + at * 3) % 5 < 2 ? letter.toUpperCase() : letter))
    .join('');
}

async function ask(
  lab: LabCluster,
  server: string,
): Promise<{ readonly answers: number; readonly own: number }> {
  const client = await UdpClient.open(lab.network.path(lab.pod('client').name), server);
  const found = { answers: 0, own: 0 };
  for (let n = 1; n <= TRIES; n++) {
    const { rcode, sameSpelling } = await client.ask(spelled(n), 'A', 2000);
    if (rcode === 0) found.answers++;
    if (sameSpelling) found.own++;
  }
  client.close();
  return found;
}

export const mixedCase: Story = {
  name: 'mixed-case',
  title: 'questions in mixed case',
  source: 'Kubernetes DNS horror stories (Datadog): random case?? (pgbouncer with libevent)',
  preconditions: [
    'clients that spell each question in random case, to detect forged replies (draft-vixie-dnsext-dns0x20)',
    'a server that returns the question in lower case: such clients reject its replies',
  ],
  trigger: `${TRIES} spellings of ${NAME}`,
  needs: [],
  seconds: 7,
  async play(stage) {
    const objects = usualObjects() + clientPod('default', 'client', '10.244.1.4');
    const lab = await stage.start({ objects, internet, ipv6: false });
    const direct = await ask(lab, INTERNET);
    const through = await ask(lab, lab.serviceAddress('kube-system/kube-dns'));
    // CoreDNS forwards the first reply in its upstream's spelling; those from its cache are correct.
    const wanted = stage.server === 'ndots' ? TRIES : TRIES - 1;
    const act = (
      kind: Act['kind'],
      title: string,
      { answers, own }: typeof direct,
      due: number,
    ): Act => ({
      kind,
      title,
      packets: [],
      command: `dig ${spelled(1)}`,
      facts: [
        equal('answers', TRIES, answers),
        equal('questions returned in the same spelling', due, own),
      ],
    });
    return [
      act('flaw', 'direct queries to the server', direct, 0),
      act(
        'cure',
        `${stage.server} between them, with its cache: each client gets its own spelling back`,
        through,
        wanted,
      ),
    ];
  },
  model: null,
};
