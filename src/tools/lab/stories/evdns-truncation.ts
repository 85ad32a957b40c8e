/** A client that treats a truncated reply as complete: libevent's evdns never uses TCP. */
import { clientPod, usualObjects } from '../defaults.ts';
import { look, planned, type Looked } from '../lookups.ts';
import { equal, holds, type Act, type Fact, type Story } from '../story.ts';

const NAME = 'large.example.com.';
const CLIENTS = ['evdns', 'glibc'] as const;

function facts(evdns: Looked, glibc: Looked, isFixed: boolean): readonly Fact[] {
  const tcp = (looked: Looked): boolean =>
    looked.queries.some(({ protocol }) => protocol === 'tcp');
  return [
    holds(`${glibc.who} finds the name`, glibc.ok),
    ...(isFixed
      ? []
      : [equal(`${glibc.who} asks again over TCP`, 'yes', tcp(glibc) ? 'yes' : 'no')]),
    equal(`${evdns.who} asks over TCP`, 'no', tcp(evdns) ? 'yes' : 'no'),
    equal(`${evdns.who} finds the name`, isFixed ? 'yes' : 'no', evdns.ok ? 'yes' : 'no'),
  ];
}

export const evdnsTruncation: Story = {
  name: 'evdns-truncation',
  title: 'a client that ignores truncation',
  source: 'Kubernetes DNS horror stories (Datadog): libevent',
  preconditions: [
    'a headless service, or an external name, with more addresses than fit into 512 bytes',
    'a program whose resolver is libevent’s evdns, which does not support TCP',
  ],
  trigger: `a lookup of ${NAME}`,
  needs: [],
  seconds: 12,
  async play(stage) {
    const objects = usualObjects() + clientPod('default', 'client', '10.244.1.4');
    const nothing = { name: NAME, answer: 'NODATA' };
    const many = [{ name: NAME, type: 'A', answer: 'n=60' }, nothing];
    const few = [{ name: NAME, type: 'A', answer: 'n=20' }, nothing];
    const lab = await stage.start({ objects, internet: many });
    const { parseAnswers } = await import('../../resolver/answers-file.ts');
    const act = async (kind: Act['kind'], title: string): Promise<Act> => {
      const evdns = await look(stage, lab, 'client', 'evdns', NAME);
      const glibc = await look(stage, lab, 'client', 'glibc', NAME);
      return {
        kind,
        title,
        command: `ndots trace ${NAME} --client evdns`,
        packets: evdns.packets,
        facts: facts(evdns, glibc, kind === 'cure'),
      };
    };
    const flaw = await act('flaw', 'sixty addresses');
    // A newly started server has no earlier reply in its cache.
    lab.answerOutside(parseAnswers({ delay: 1, rules: few }, 'few'));
    await lab.stopDns('kube-system/dns-1');
    await lab.startDns('kube-system/dns-1');
    return [flaw, await act('cure', 'twenty addresses, which fit')];
  },
  async model() {
    const act = async (kind: Act['kind'], title: string, answer: string): Promise<Act> => {
      const rules = [
        { name: NAME, type: 'A', answer },
        { name: NAME, answer: 'NODATA' },
      ];
      const [evdns, glibc] = await Promise.all(
        CLIENTS.map((client) => planned(client, NAME, rules)),
      );
      return {
        kind,
        title,
        command: `ndots trace ${NAME} --client evdns`,
        packets: evdns!.packets,
        facts: facts(evdns!, glibc!, kind === 'cure'),
      };
    };
    return [
      await act('flaw', 'sixty addresses', 'n=60 TC'),
      await act('cure', 'twenty addresses, which fit', 'n=20'),
    ];
  },
};
