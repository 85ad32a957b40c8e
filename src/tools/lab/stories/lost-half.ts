/** One of the two packets of a lookup is lost, which costs five seconds each time. */
import { insertFailed } from '../conntrack.ts';
import { clientPod, usualCorefile, usualObjects } from '../defaults.ts';
import { loseSecondOfPair, lostBy } from '../faults.ts';
import { getent, look, planned, type Looked } from '../lookups.ts';
import { equal, holds, within, type Act, type Fact, type Story } from '../story.ts';

const NAME = 'api.example.com.';
/**
 * Milliseconds; the delay of replies. It is longer than the window in which a second packet is lost, so that
 * only pairs are affected.
 */
const DELAY_MS = 60;
const internet = [
  { name: NAME, type: 'A', answer: `203.0.113.80 d=${DELAY_MS}` },
  { name: NAME, type: 'AAAA', answer: `2001:db8::80 d=${DELAY_MS}` },
];
/** Without a cache, so that every lookup reaches the upstream. */
const corefile = usualCorefile.replace(/ {4}cache[^]*?\n {4}}\n/, '');

/** The resolver options, each with a pod of its own. */
const settings = ['single-request', 'single-request-reopen', 'use-vc'] as const;

function option(name: string): string {
  return `  dnsConfig: { options: [{ name: ${name} }] }`;
}

function slow(
  who: string,
  { ok, seconds }: Looked,
  [least, most]: readonly [number, number],
): readonly Fact[] {
  return [within(`seconds with ${who}`, [least, most], seconds), holds(`found by ${who}`, ok)];
}

const quick = (who: string, looked: Looked): readonly Fact[] => slow(who, looked, [0, 2.4]);

export const lostHalf: Story = {
  name: 'lost-half',
  title: 'the lost half of an A/AAAA pair: five seconds',
  source: 'kubernetes issue 56903; Kubernetes DNS horror stories (Datadog)',
  preconditions: [
    'a client that sends A and AAAA from one port, as glibc and musl do',
    'a node that translates the address of the DNS service to a pod’s',
    'the second packet of the pair is lost: by a rule, because this kernel no longer loses it',
  ],
  trigger: `a lookup of ${NAME}`,
  needs: [{ program: 'getent' }, { program: 'nft' }],
  seconds: 14,
  async play(stage) {
    const pods = settings.map((name, index) =>
      clientPod('default', name, `10.244.1.${10 + index}`, option(name)),
    );
    const lab = await stage.start({
      objects:
        usualObjects() +
        clientPod('default', 'client', '10.244.1.4') +
        clientPod('default', 'ipv4', '10.244.1.5') +
        clientPod('default', 'musl', '10.244.1.6') +
        clientPod('default', 'go', '10.244.1.7') +
        pods.join(''),
      internet,
      corefile,
    });
    const { node } = lab.pod('default/client');
    lab.network.set(lab.pod('default/ipv4').name, 'net/ipv6/conf/all/disable_ipv6', '1');
    const before = await look(stage, lab, 'default/client', 'glibc', NAME);
    loseSecondOfPair(lab, node);
    const [glibc, musl, go] = await Promise.all([
      look(stage, lab, 'default/client', 'glibc', NAME),
      look(stage, lab, 'default/musl', 'musl', NAME),
      look(stage, lab, 'default/go', 'go', NAME),
    ]);
    const lost = lostBy(lab, node, 'second');
    const flaw: Act = {
      kind: 'flaw',
      title: 'the second packet of the pair is lost',
      command: `getent ahosts ${NAME}`,
      packets: glibc.packets,
      facts: [
        ...quick(`${before.who}, before`, before),
        ...slow(glibc.who, glibc, [4.9, 9]),
        ...slow(musl.who, musl, [2.4, 4.8]),
        ...quick(`${go.who}, which has a port for each question`, go),
        within('packets dropped by the rule', [2, Infinity], lost),
      ],
    };
    const fixed = await Promise.all(
      [...settings, 'ipv4'].map(async (name) => ({
        name,
        // getent sets AI_ADDRCONFIG, like programs that give no hints: without an IPv6 address it does not
        // ask for AAAA.
        looked: await getent(stage, lab, `default/${name}`, NAME),
      })),
    );
    const cure: Act = {
      kind: 'cure',
      title: 'one question at a time, or TCP, or no AAAA; the rule is still there',
      command: `getent ahosts ${NAME}`,
      packets: [],
      facts: [
        ...fixed.flatMap(({ name, looked }) => quick(name === 'ipv4' ? 'IPv6 off' : name, looked)),
        equal('pairs lost by the kernel itself (insert_failed)', 0, insertFailed(lab, node)),
      ],
    };
    return [flaw, cure];
  },
  async model() {
    const raced = internet.map((rule) => ({ ...rule, answer: `RACE ${rule.answer}` }));
    const plan = (client: string, name?: string): Promise<Looked> =>
      planned(client, NAME, name === 'use-vc' ? internet : raced, {
        ipv6: name !== 'ipv4',
        ...(name === undefined || name === 'ipv4'
          ? {}
          : { config: { nameservers: [], searches: [], options: [{ name }] } }),
      });
    const [glibc, musl, go] = await Promise.all([plan('glibc'), plan('musl'), plan('go')]);
    const fixed = await Promise.all(
      [...settings, 'ipv4'].map(async (name) => ({ name, looked: await plan('glibc', name) })),
    );
    return [
      {
        kind: 'flaw',
        title: 'the second packet of the pair is lost',
        command: `getent ahosts ${NAME}`,
        packets: glibc.packets,
        facts: [
          ...slow('glibc', glibc, [5, 5.5]),
          ...slow('musl', musl, [2.5, 3]),
          ...quick('Go, which uses a port for each question', go),
        ],
      },
      {
        kind: 'cure',
        title: 'one question at a time, or TCP, or no AAAA',
        command: `getent ahosts ${NAME}`,
        packets: [],
        facts: fixed.flatMap(({ name, looked }) =>
          quick(name === 'ipv4' ? 'IPv6 off' : name, looked),
        ),
      },
    ];
  },
};
