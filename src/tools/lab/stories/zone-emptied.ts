/** An upstream briefly answers NXDOMAIN for all of its names: caches decide how long clients are affected. */
import { clientPod, usualCorefile, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { parseAnswers } from '../../resolver/answers-file.ts';
import { equal, within, type Act, type Story } from '../story.ts';
import { UdpClient } from '../udp-client.ts';
import { pause } from '../pause.ts';

const NAME = 'api.example.com.';
const whole = [
  { name: 'api.example.com', type: 'A', answer: '203.0.113.80 ttl=1' },
  { name: 'api.example.com', answer: 'NODATA' },
];
const emptied = [{ name: '*', answer: 'NXDOMAIN ttl=30' }];
const cache = (denial: number): string =>
  usualCorefile.replace('    cache 30 {\n', `    cache 30 {\n        denial 9984 ${denial}\n`);

/** Seconds from the end of the fault until the name resolves again; null: more than `mostSeconds`. */
async function recovery(
  lab: LabCluster,
  mostSeconds: number,
): Promise<{ readonly gone: boolean; readonly seconds: number }> {
  const server = lab.serviceAddress('kube-system/kube-dns');
  const client = await UdpClient.open(lab.network.path(lab.pod('client').name), server);
  const follow = (rules: readonly object[]): void => {
    lab.answerOutside(parseAnswers({ delay: 1, rules }, 'the internet'));
  };
  follow(emptied);
  // The name's cache entry expires after a second.
  let gone = false;
  for (let tries = 0; tries < 60 && !gone; tries++) {
    gone = (await client.ask(NAME, 'A', 1000)).rcode === 3;
    await pause(100);
  }
  follow(whole);
  const began = performance.now();
  let seconds = 0;
  while (seconds < mostSeconds && (await client.ask(NAME, 'A', 1000)).rcode !== 0) {
    await pause(100);
    seconds = (performance.now() - began) / 1000;
  }
  client.close();
  return { gone, seconds };
}

export const zoneEmptied: Story = {
  name: 'zone-emptied',
  title: 'an upstream that briefly answers NXDOMAIN for everything',
  source: 'deckhouse issue 14836; coredns issue 8273',
  preconditions: [
    'external names with a TTL of one second',
    'a cache that stores "no such name" for the full TTL',
  ],
  trigger: 'the upstream answers NXDOMAIN for all names, and recovers',
  needs: [],
  seconds: 22,
  async play(stage) {
    const objects = usualObjects() + clientPod('default', 'client', '10.244.1.4');
    const lab = await stage.start({ objects, internet: whole, corefile: cache(6), ipv6: false });
    const flaw = await recovery(lab, 12);
    await lab.stopDns('kube-system/dns-1');
    await lab.startDns('kube-system/dns-1', cache(1));
    const cure = await recovery(lab, 12);
    const act = (
      kind: Act['kind'],
      title: string,
      { gone, seconds }: Awaited<ReturnType<typeof recovery>>,
      bounds: readonly [number, number],
    ): Act => ({
      kind,
      title,
      packets: [],
      command: `dig ${NAME}`,
      facts: [
        equal('NXDOMAIN for the name', 'yes', gone ? 'yes' : 'no'),
        within('seconds from the upstream’s recovery to the client’s', bounds, seconds),
      ],
    });
    return [
      act(
        'flaw',
        'denial 6: the cache repeats it for six seconds (30 minutes is usual)',
        flaw,
        [3.5, 9],
      ),
      act('cure', 'denial 1: it is over after one', cure, [0, 3]),
    ];
  },
  model: null,
};
