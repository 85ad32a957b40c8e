/** A node runs out of source ports for its resolver, so new queries are lost without any error. */
import { SnatPorts } from '../proxy-rules/snat.ts';
import { act, equal, within, type Story } from '../story.ts';

const RATE = 100;
const SECONDS = 120;
/** The number of ports that clouds provide per destination, for example in Azure's load balancers. */
const PORTS = 1024;

function play(
  rate: number,
  holdSeconds: number,
): { readonly lost: number; readonly taken: number } {
  const ports = new SnatPorts(PORTS, holdSeconds);
  let taken = 0;
  for (let query = 0; query < rate * SECONDS; query++) {
    const atMs = (query / rate) * 1000;
    ports.open(atMs);
    taken = Math.max(taken, ports.taken(atMs));
  }
  return { lost: ports.lost, taken };
}

export const snatPorts: Story = {
  name: 'snat-ports',
  title: 'no source port is left',
  source:
    'A reason for unexplained connection timeouts on Kubernetes/Docker (XING); kubernetes issue 45976',
  preconditions: [
    `${PORTS} source ports for all pods on a node to reach one resolver`,
    'each UDP query uses one for 30 s',
  ],
  trigger: `${RATE} queries a second, for ${SECONDS} s`,
  needs: [],
  seconds: 1,
  play: null,
  model() {
    const [flaw, cure] = [play(RATE, 30), play(PORTS / 30 - 1, 30)];
    // Ports become free at the rate at which they were allocated 30 s earlier.
    const share = 1 - PORTS / 30 / RATE;
    const acts = [
      act('flaw', 'more queries than ports', 'dig', [
        equal('ports in use', PORTS, flaw.taken),
        within(
          `share of queries that are lost (predicted: ${share.toFixed(2)})`,
          [share - 0.15, share + 0.05],
          flaw.lost / (RATE * SECONDS),
        ),
      ]),
      act('cure', 'a cache, so that fewer queries leave the node', 'dig', [
        equal('lost queries', 0, cure.lost),
        within('ports in use', [900, PORTS], cure.taken),
      ]),
    ];
    return Promise.resolve(acts);
  },
};
