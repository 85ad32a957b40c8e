/** A search domain with a wildcard: every external name resolves within it. */
import { clientPod, usualObjects } from '../defaults.ts';
import { getent, planned, type Looked } from '../lookups.ts';
import { equal, type Act, type Fact, type Story } from '../story.ts';

const WRONG = '198.51.100.7';
const rules = [
  { name: '*.apps.example.', type: 'A', answer: WRONG },
  { name: 'api.example.com', type: 'A', answer: '203.0.113.80' },
  { name: 'shop.example.net', type: 'A', answer: '203.0.113.81' },
  { name: '*.apps.example.', answer: 'NODATA' },
  { name: '*.example.com', answer: 'NODATA' },
  { name: '*.example.net', answer: 'NODATA' },
];
const nodeResolvConf = 'search apps.example\nnameserver 192.0.2.53\n';

function facts(one: Looked, other: Looked, isFixed: boolean): readonly Fact[] {
  return [
    equal('address of api.example.com', isFixed ? '203.0.113.80' : WRONG, one.addresses.join(' ')),
    equal(
      'address of shop.example.net',
      isFixed ? '203.0.113.81' : WRONG,
      other.addresses.join(' '),
    ),
  ];
}

export const wildcardSuffix: Story = {
  name: 'wildcard-suffix',
  title: 'a wildcard among the search domains',
  source: 'openshift/origin issue 17316; kubernetes issue 49113',
  preconditions: [
    'the node searches apps.example, whose zone has a wildcard: *.apps.example',
    'ndots:5: search domains come before the name itself',
  ],
  trigger: 'lookups of api.example.com and shop.example.net',
  needs: [{ program: 'getent' }],
  seconds: 5,
  async play(stage) {
    const objects = usualObjects() + clientPod('default', 'client', '10.244.1.4');
    const lab = await stage.start({ objects, internet: rules, nodeResolvConf });
    const act = async (kind: Act['kind'], title: string, dot: string): Promise<Act> => {
      const result = await getent(stage, lab, 'client', `api.example.com${dot}`);
      const other = await getent(stage, lab, 'client', `shop.example.net${dot}`);
      return {
        kind,
        title,
        command: `getent ahosts api.example.com${dot}`,
        packets: result.packets,
        facts: facts(result, other, kind === 'cure'),
      };
    };
    return [
      await act('flaw', 'names as usually written', ''),
      await act('cure', 'names with a trailing dot', '.'),
    ];
  },
  async model() {
    const act = async (kind: Act['kind'], title: string, dot: string): Promise<Act> => {
      const look = (name: string): Promise<Looked> =>
        planned('glibc', `${name}${dot}`, rules, { nodeResolvConf });
      const [one, other] = [await look('api.example.com'), await look('shop.example.net')];
      return {
        kind,
        title,
        command: `getent ahosts api.example.com${dot}`,
        packets: one.packets,
        facts: facts(one, other, kind === 'cure'),
      };
    };
    return [
      await act('flaw', 'names as usually written', ''),
      await act('cure', 'names with a trailing dot', '.'),
    ];
  },
};
