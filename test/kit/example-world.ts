/** The world for the live rules' examples: each address's fault, and the names that exist. */
import { seededRandom } from '../../src/server/base/random.ts';
import type { LiveWorld } from '../../src/tools/lint/live/live-rule.ts';
import type { ProbeResult, ProbeQuestion } from '../../src/tools/probe/network.ts';
import { FLAG, RCODE, TYPE } from '../../src/server/wire/iana.ts';
import type { DnsRecord } from '../../src/server/wire/message.ts';

const silence: ProbeResult = {
  reply: null,
  size: 0,
  tookMs: null,
  sent: 2,
  lost: 2,
  failure: 'no reply to 2 tries of 2000 ms',
};

function answered(
  asked: ProbeQuestion,
  rcode: number,
  answer: readonly DnsRecord[] = [],
): ProbeResult {
  const reply = {
    id: 1,
    flags: FLAG.QR,
    rcode,
    question: [{ ...asked, class: 1 }],
    answer,
    authority: [],
    additional: [],
    edns: null,
  };
  return { reply, size: 100, tookMs: 1, sent: 1, lost: 0, failure: null };
}

function answer(host: string, protocol: 'udp' | 'tcp', asked: ProbeQuestion): ProbeResult {
  if (host === '192.0.2.1') return silence;
  if (host === '192.0.2.2' && protocol === 'tcp') return silence;
  if (host === '192.0.2.3' && asked.edns !== null) return silence;
  const { name, type } = asked;
  const record = (data: object): DnsRecord =>
    ({ name, type, class: 1, ttl: 60, data }) as unknown as DnsRecord;
  if (name.startsWith('dns-version.') && host === '192.0.2.4')
    return answered(asked, RCODE.NOERROR, [record({ texts: [Buffer.from('1.1.0')] })]);
  if (name.endsWith('.wildcard.example.') && type === TYPE.A)
    return answered(asked, RCODE.NOERROR, [record({ address: '192.0.2.66' })]);
  return answered(asked, RCODE.NXDOMAIN);
}

export const exampleWorld: LiveWorld = {
  asking: {
    network: {
      ask: ({ host }, questions, { protocol }) =>
        Promise.resolve(questions.map((each) => answer(host, protocol, each))),
      lookup: () => Promise.reject(new Error('no example looks names up')),
    },
    random: seededRandom(1),
    timeoutMs: 2000,
    tries: 2,
  },
  resolvers: [{ host: '192.0.2.53', port: 53 }],
  resolve: (host) => Promise.resolve(host.startsWith('gone.') ? [] : ['192.0.2.53']),
  isFile: () => false,
  certificate: ({ host }) =>
    Promise.resolve(host === '192.0.2.5' ? 'it is valid only for other names' : null),
};
