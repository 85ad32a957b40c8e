/** A search domain answers SERVFAIL: musl stops there, glibc continues. */
import { clientPod, usualObjects } from '../defaults.ts';
import { look, planned, type Looked } from '../lookups.ts';
import { equal, holds, type Act, type Fact, type Story } from '../story.ts';

const NAME = 'api.example.com';
const address = { name: NAME, answer: '203.0.113.80' };
const broken = { name: '*.corp.example.', answer: 'SERVFAIL' };
/** The failing search domain is that of the node. */
const nodeResolvConf = 'search corp.example\nnameserver 192.0.2.53\n';

function facts(glibc: Looked, musl: Looked, isFixed: boolean): readonly Fact[] {
  const asked = musl.queries.map(({ name }) => name);
  return [
    holds(`${glibc.who} finds the name`, glibc.ok),
    isFixed
      ? holds(`${musl.who} finds the name`, musl.ok)
      : equal(`${musl.who} finds the name`, 'no', musl.ok ? 'yes' : 'no'),
    equal(
      'musl tries the name itself',
      isFixed ? 'yes' : 'no',
      asked.includes(`${NAME}.`) ? 'yes' : 'no',
    ),
  ];
}

export const alpineServfail: Story = {
  name: 'alpine-servfail',
  title: 'Alpine stops at the first SERVFAIL',
  source: 'kubernetes issue 64924; docker-alpine issue 255',
  preconditions: [
    'a search domain of the node, corp.example, whose servers answer SERVFAIL',
    'ndots:5: search domains come before the name itself',
    'one pod with glibc, and one with musl (Alpine)',
  ],
  trigger: `a lookup of ${NAME}`,
  needs: [],
  seconds: 14,
  async play(stage) {
    const objects =
      usualObjects() +
      clientPod('default', 'client', '10.244.1.4') +
      clientPod(
        'default',
        'cured',
        '10.244.1.5',
        '  dnsConfig: { options: [{ name: ndots, value: "1" }] }',
      );
    const lab = await stage.start({ objects, internet: [broken, address], nodeResolvConf });
    const act = async (kind: Act['kind'], title: string, pod: string): Promise<Act> => {
      const glibc = await look(stage, lab, pod, 'glibc', NAME);
      const musl = await look(stage, lab, pod, 'musl', NAME);
      return {
        kind,
        title,
        command: `ndots trace ${NAME} --client musl`,
        packets: musl.packets,
        facts: facts(glibc, musl, kind === 'cure'),
      };
    };
    return [
      await act('flaw', "kubelet's defaults", 'default/client'),
      await act(
        'cure',
        'ndots: 1 in the dnsConfig of the pod: names with a dot come first',
        'default/cured',
      ),
    ];
  },
  async model() {
    const rules = [broken, address, { name: NAME, answer: 'NODATA' }];
    const act = async (kind: Act['kind'], title: string, ndots?: string): Promise<Act> => {
      const config =
        ndots === undefined
          ? {}
          : {
              config: { nameservers: [], searches: [], options: [{ name: 'ndots', value: ndots }] },
            };
      const [glibc, musl] = await Promise.all(
        ['glibc', 'musl'].map((client) =>
          planned(client, NAME, rules, { nodeResolvConf, ...config }),
        ),
      );
      return {
        kind,
        title,
        command: `ndots trace ${NAME} --client musl`,
        packets: musl!.packets,
        facts: facts(glibc!, musl!, kind === 'cure'),
      };
    };
    return [await act('flaw', "kubelet's defaults"), await act('cure', 'ndots: 1', '1')];
  },
};
