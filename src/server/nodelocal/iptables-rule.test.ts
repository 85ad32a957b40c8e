import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readSaved, ruleWords, sameAs } from './iptables-rule.ts';
import { nodeRules } from './packet-rules.ts';

const parts = { addresses: ['10.96.0.10'], port: 53, healthPort: 8080, lease: true };
const [saved] = readSaved(
  '*raw\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING -d 10.96.0.10/32 -p udp -m udp --dport 53 -m comment --comment "NodeLocal DNS Cache: skip conntrack" -j CT --notrack\nCOMMIT\n',
);

describe('rules of a node cache', () => {
  const rules = nodeRules(parts);
  const skip = rules.find(
    ({ chain, protocol, action }) =>
      chain === 'PREROUTING' && protocol === 'udp' && action === 'notrack',
  )!;

  test('a saved rule is recognized however the iptables version prints NOTRACK', () => {
    assert.ok(sameAs(saved!, ruleWords(skip, 'list')));
  });

  test('a rule for another address or port is a different rule', () => {
    assert.ok(!sameAs(saved!, ruleWords({ ...skip, to: '10.96.0.11' }, 'list')));
    assert.ok(!sameAs(saved!, ruleWords({ ...skip, toPort: 54 }, 'list')));
  });

  test('an IPv6 address is the same however it is spelled', () => {
    const line =
      '-A PREROUTING -d fd00::10/128 -p udp -m udp --dport 53 -m comment --comment "NodeLocal DNS Cache: skip conntrack" -j NOTRACK';
    const [six] = readSaved(line);
    assert.ok(sameAs(six!, ruleWords({ ...skip, family: 6, to: 'fd00:0:0:0:0:0:0:10' }, 'list')));
  });

  test('in each chain, the rules that release an address precede those that lead there', () => {
    for (const chain of ['PREROUTING', 'OUTPUT']) {
      const actions = rules.filter((rule) => rule.chain === chain).map(({ action }) => action);
      assert.ok(actions.lastIndexOf('lapse') < actions.indexOf('notrack'));
    }
  });

  test('without a lease, they are NodeLocal DNSCache’s twelve', () => {
    assert.equal(nodeRules({ ...parts, lease: false }).length, 12);
  });
});
