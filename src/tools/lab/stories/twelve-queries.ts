/** An external name costs twelve queries: five search domains and the name itself, each for A and AAAA. */
import type { PacketRow } from '../capture.ts';
import { clientPod, usualCorefile, usualObjects } from '../defaults.ts';
import { planned } from '../lookups.ts';
import { equal, type Act, type Fact, type Story } from '../story.ts';

const NAME = 'www.google.com';
const CLIENT = 'default/client';
const MACHINE_IP = '10.244.1.4';

const internet = [
  {
    name: NAME,
    type: 'A',
    answer: [103, 104, 105, 106, 147, 99].map((last) => `173.194.76.${last}`).join(' '),
  },
  {
    name: NAME,
    type: 'AAAA',
    answer: '2a00:1450:400c:c0b::67 2a00:1450:400c:c0b::68 2a00:1450:400c:c0b::93',
  },
];

/** In the order of the queries. */
const searched = [
  `${NAME}.default.svc.cluster.local.`,
  `${NAME}.svc.cluster.local.`,
  `${NAME}.cluster.local.`,
  `${NAME}.c.sandbox.internal.`,
  `${NAME}.google.internal.`,
  `${NAME}.`,
];

const autopath = usualCorefile.replace('    forward', '    autopath @name\n    forward');

function facts(
  packets: readonly PacketRow[],
  names: readonly string[],
  ok: boolean,
): readonly Fact[] {
  const queries = packets.filter(({ isQuery }) => isQuery);
  const asked = queries.map(({ text }) => text.split(' ').at(-1) ?? '');
  const families = new Set(queries.map(({ text }) => text.split('?')[0]));
  return [
    equal('queries', 2 * names.length, queries.length),
    equal('queried names', names.length, new Set(asked).size),
    equal(
      'address families',
      'A AAAA',
      [...families].toSorted((a = '', b = '') => a.localeCompare(b)).join(' '),
    ),
    equal('the name is found', 'yes', ok ? 'yes' : 'no'),
  ];
}

export const twelveQueries: Story = {
  name: 'twelve-queries',
  title: 'one name, twelve queries',
  source: 'Kubernetes DNS horror stories (Datadog, KubeCon EU 2020)',
  preconditions: [
    'a pod with dnsPolicy ClusterFirst: three search domains of the cluster, and two of its node',
    'ndots:5, so that a name with fewer than five dots is first tried with each of them',
    'a client that asks for A and AAAA',
  ],
  trigger: `a program in the pod looks up ${NAME}`,
  needs: [{ program: 'getent' }],
  seconds: 4,
  async play(stage) {
    const lab = await stage.start({
      objects: usualObjects() + clientPod('default', 'client', MACHINE_IP),
      internet,
    });
    const { name: machine } = lab.pod(CLIENT);
    const look = async (
      kind: Act['kind'],
      title: string,
      name: string,
      names: readonly string[],
    ): Promise<Act> => {
      const words = ['getent', 'ahosts', name];
      const { result, packets } = await stage.capture(machine, {}, () =>
        lab.execLater(CLIENT, words),
      );
      return {
        kind,
        title,
        command: words.join(' '),
        packets,
        facts: facts(packets, names, result.code === 0),
      };
    };
    const acts = [await look('flaw', "kubelet's defaults", NAME, searched)];
    acts.push(await look('cure', 'a trailing dot: the name is complete', `${NAME}.`, [`${NAME}.`]));
    if (stage.server === 'ndots') {
      await lab.stopDns('kube-system/dns-1');
      await lab.startDns('kube-system/dns-1', autopath);
      acts.push(
        await look(
          'cure',
          'autopath @name: the server walks the search path',
          NAME,
          searched.slice(0, 1),
        ),
      );
    }
    return acts;
  },
  async model() {
    const look = async (
      kind: Act['kind'],
      title: string,
      name: string,
      names: readonly string[],
    ): Promise<Act> => {
      const { ok, packets } = await planned('glibc', name, internet);
      const command = `getent ahosts ${name}`;
      return { kind, title, command, packets, facts: facts(packets, names, ok) };
    };
    return [
      await look('flaw', "kubelet's defaults", NAME, searched),
      await look('cure', 'a trailing dot: the name is complete', `${NAME}.`, [`${NAME}.`]),
    ];
  },
};
