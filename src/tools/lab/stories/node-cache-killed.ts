/** The cache of a node is killed or hangs: which server answers its pods then? */
import type { LabCluster } from '../cluster.ts';
import { longestOutageMs } from '../load.ts';
import {
  asNodeLocal,
  NODE,
  nodeCachePlan,
  startWithNodeCache,
  stream,
  untilNodeAnswers,
  whoAnswers,
} from '../node-cache-world.ts';
import { equal, within, type Act, type Fact, type Story } from '../story.ts';
import { pause } from '../pause.ts';

const RATE = 200;
/** Seconds from the signal to the end of the stream. */
const AFTER = 2.5;
/** The most seconds until a pod gets replies again. */
const MOST = 1;

interface SeenKill {
  readonly before: string;
  readonly after: string;
  readonly outageSeconds: number;
}

async function strike(lab: LabCluster, signal: NodeJS.Signals): Promise<SeenKill> {
  await untilNodeAnswers(lab);
  const before = await whoAnswers(lab);
  const sent = stream(lab, RATE, AFTER + 0.5, 400);
  await pause(500);
  lab.caches.signal(NODE, signal);
  const { all } = await sent;
  return { before, after: await whoAnswers(lab), outageSeconds: longestOutageMs(all) / 1000 };
}

function facts({ before, after, outageSeconds }: SeenKill, isFixed: boolean): readonly Fact[] {
  return [
    equal('answering server before', 'node', before),
    within(
      'seconds without an answer',
      isFixed ? [0, MOST] : [AFTER - 0.5, Infinity],
      outageSeconds,
    ),
    equal('answering server afterwards', isFixed ? 'cluster' : 'nobody', after),
  ];
}

export const nodeCacheKilled: Story = {
  name: 'node-cache-killed',
  title: 'the cache of a node is killed',
  source: 'kubernetes/dns issues 394, 438 and 453; Kubernetes DNS horror stories (Datadog)',
  preconditions: [
    'a node whose cache has the address of the DNS service, as NodeLocal DNSCache does it',
    `a pod of that node that asks ${RATE} times a second`,
  ],
  trigger: 'the cache gets SIGKILL, as when memory runs out, or SIGSTOP, as when it hangs',
  needs: [{ program: 'iptables' }],
  seconds: 20,
  async play(stage) {
    const lab = await startWithNodeCache(stage);
    const act = (kind: Act['kind'], title: string, command: string, seen: SeenKill): Act => ({
      kind,
      title,
      command,
      packets: [],
      facts: facts(seen, kind === 'cure'),
    });
    await lab.caches.start(NODE, nodeCachePlan(lab, asNodeLocal));
    const flaw = await strike(lab, 'SIGKILL');
    await lab.caches.stop(NODE, 'SIGKILL');
    await lab.caches.start(NODE, nodeCachePlan(lab, []));
    const stopped = await strike(lab, 'SIGSTOP');
    lab.caches.signal(NODE, 'SIGCONT');
    await untilNodeAnswers(lab);
    const again = await whoAnswers(lab);
    const killed = await strike(lab, 'SIGKILL');
    const stops = act('cure', 'it stands still', 'kill -STOP', stopped);
    return [
      act(
        'flaw',
        'interface and rules stay, without a process behind them',
        'kill -KILL, with -failopen=false -skipteardown',
        flaw,
      ),
      {
        ...stops,
        facts: [...stops.facts, equal('answering server after it continues', 'node', again)],
      },
      act('cure', 'it is killed', 'kill -KILL', killed),
    ];
  },
  model: null,
};
