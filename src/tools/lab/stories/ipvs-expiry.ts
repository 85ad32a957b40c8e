/** IPVS remembers UDP connections for five minutes, even to a removed pod, and reused source ports match them. */
import { seededRandom } from '../../../server/base/random.ts';
import { defaultIpvs, IpvsService, type IpvsSettings } from '../proxy-rules/ipvs.ts';
import { act, equal, within, type Story } from '../story.ts';

const RATE = 200;
/** The number of source ports used by Linux (`net.ipv4.ip_local_port_range`). */
const PORTS = 60_999 - 32_768 + 1;
const SECONDS = 400;

/** Simulates a client with random source ports, before and after a server disappears. */
function play(settings: IpvsSettings): { readonly lost: number; readonly last: number } {
  const service = new IpvsService(settings, ['10.244.1.53', '10.244.2.53']);
  const random = seededRandom(53);
  let lost = 0;
  let last = 0;
  for (let query = -SECONDS * RATE; query < SECONDS * RATE; query++) {
    const atMs = (query / RATE) * 1000;
    if (query === 0) service.remove('10.244.1.53');
    if (service.packet(32_768 + random.integer(PORTS), atMs) !== 'lost') continue;
    lost++;
    last = atMs / 1000;
  }
  return { lost, last };
}

export const ipvsExpiry: Story = {
  name: 'ipvs-expiry',
  title: 'IPVS remembers a removed pod for five minutes',
  source: 'Kubernetes DNS horror stories (Datadog): rolling updates; kubernetes issue 71514',
  preconditions: [
    'kube-proxy in IPVS mode with two DNS pods',
    `a busy client: ${RATE} queries a second from random ports, so ports are reused within minutes`,
  ],
  trigger: 'one of the pods is deleted',
  needs: [],
  seconds: 1,
  play: null,
  model() {
    const [flaw, cure, short] = [
      play(defaultIpvs),
      play({ ...defaultIpvs, expireNoDestination: true }),
      play({ udpSeconds: 30, expireNoDestination: true }),
    ];
    const acts = [
      act('flaw', "the kernel's default: 300 s", 'kubectl delete pod dns-1', [
        within('lost queries', [5000, Infinity], flaw.lost),
        within('seconds from the deletion to the last loss', [290, 300], flaw.last),
      ]),
      act(
        'cure',
        'a packet for a removed pod ends the connection',
        'sysctl net.ipv4.vs.expire_nodest_conn=1',
        [
          within('lost queries: one for each reused port', [1, flaw.lost], cure.lost),
          within('seconds from the deletion to the last loss', [0, 300], cure.last),
        ],
      ),
      act('cure', 'and UDP connections expire after 30 s', 'ipvsadm --set 0 0 30', [
        within('lost queries', [0, cure.lost / 3], short.lost),
        equal('lost after 30 s', 'no', short.last > 30 ? 'yes' : 'no'),
      ]),
    ];
    return Promise.resolve(acts);
  },
};
