/** One name in two root file systems: `kube-health.localhost` exists in one of them and not in the other. */
import { clientPod, usualObjects } from '../defaults.ts';
import { modelled, type Looked } from '../lookups.ts';
import { equal, within, type Act, type Story } from '../story.ts';

const NAME = 'kube-health.localhost';
const CLIENT = 'glibc';

export const kubeHealthLocalhost: Story = {
  name: 'kube-health-localhost',
  title: 'kube-health.localhost: found here, and not there',
  source: 'A trip down the DNS rabbit hole (Box, 2020)',
  preconditions: [
    'a check that looks up kube-health.localhost',
    'a root file system whose nsswitch.conf has myhostname, as with systemd, and one without',
  ],
  trigger: `a lookup of ${NAME} in a pod with each`,
  needs: [],
  seconds: 12,
  async play(stage) {
    const objects =
      usualObjects() +
      clientPod('default', 'scratch', '10.244.1.4') +
      clientPod('default', 'systemd', '10.244.1.5');
    const lab = await stage.start({
      objects,
      files: {
        'default/scratch': { '/etc/nsswitch.conf': 'hosts: files dns\n' },
        'default/systemd': { '/etc/nsswitch.conf': 'hosts: files myhostname dns\n' },
      },
    });
    const look = async (pod: string): Promise<Looked> => modelled(stage, lab, pod, CLIENT, NAME);
    const [scratch, systemd] = [await look('scratch'), await look('systemd')];
    const act = (kind: Act['kind'], title: string, looked: Looked, facts: Act['facts']): Act => ({
      kind,
      title,
      packets: looked.packets,
      facts,
      command: `ndots trace ${NAME} --client ${CLIENT}`,
    });
    return [
      act('flaw', 'without myhostname: DNS is queried, and does not have the name', scratch, [
        equal('found', 'no', scratch.ok ? 'yes' : 'no'),
        within('queries', [12, 12], scratch.queries.length),
        equal(
          'what the last program gets',
          'NXDOMAIN',
          scratch.queries.at(-1)?.answer ?? 'nothing',
        ),
      ]),
      act(
        'cure',
        'with myhostname: *.localhost is this machine (RFC 6761), and no query is sent',
        systemd,
        [
          equal('found', 'yes', systemd.ok ? 'yes' : 'no'),
          equal(
            'address',
            '127.0.0.1',
            systemd.addresses.find((ip) => !ip.includes(':')) ?? 'none',
          ),
          equal('queries', 0, systemd.queries.length),
        ],
      ),
    ];
  },
  model: null,
};
