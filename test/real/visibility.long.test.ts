/** Attacks `visibility`: over every transport, one tenant tries to learn about another. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { RCODE, TYPE } from '../../src/server/wire/iana.ts';
import { readMessage } from '../../src/server/wire/message.ts';
import { parseName } from '../../src/server/wire/name.ts';
import { printMessage } from '../../src/server/wire/print.ts';
import { testCertificate, testKey } from '../kit/certificate.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { framed, StreamClient } from '../kit/loopback.ts';
import { freePorts } from '../kit/free-ports.ts';

const program = join(import.meta.dirname, '../../bin/ndots');
const directory = mkdtempSync(join(tmpdir(), 'ndots-visibility-'));

/** Tenants and their pods. All addresses are in the loopback network, so that queries can be sent from them. */
const namespaces = ['team-a', 'team-b', 'shared', 'kube-system'];
const address = {
  pod: '127.1.0.1',
  other: '127.2.0.1',
  node: '127.9.0.5',
  gone: '127.2.0.9',
  stranger: '127.8.8.8',
};
const SEES_ALL = '127.4.0.1';
const PROXY = '127.9.0.7';

const meta = { apiVersion: 'v1' };
const pod = (
  name: string,
  namespace: string,
  ip: string,
  spec: object = {},
  phase = 'Running',
  more: readonly string[] = [],
): object => ({
  ...meta,
  kind: 'Pod',
  metadata: { name, namespace, labels: { app: name } },
  spec: { containers: [], ...spec },
  status: {
    phase,
    podIP: ip,
    podIPs: [ip, ...more].map((each) => ({ ip: each })),
    conditions: [{ type: 'Ready', status: 'True' }],
  },
});
const service = (name: string, namespace: string, spec: object): object => ({
  ...meta,
  kind: 'Service',
  metadata: { name, namespace },
  spec,
});
const http = [{ name: 'http', port: 80, protocol: 'TCP' }];
const objects = [
  ...namespaces.flatMap((namespace, i) => {
    const n = i + 1;
    const next = namespaces[(i + 1) % namespaces.length];
    return [
      { ...meta, kind: 'Namespace', metadata: { name: namespace } },
      service('web', namespace, {
        clusterIP: `10.96.${n}.1`,
        clusterIPs: [`10.96.${n}.1`, `fd00:${n}::1`],
        ipFamilies: ['IPv4', 'IPv6'],
        externalIPs: [`192.0.2.${n}`],
        ports: http,
        selector: { app: 'client' },
      }),
      service('db', namespace, { clusterIP: 'None', ports: http, selector: { app: 'db-0' } }),
      service('alias', namespace, {
        type: 'ExternalName',
        externalName: `web.${next}.svc.cluster.local`,
      }),
      service('out', namespace, { type: 'ExternalName', externalName: `${namespace}.example.net` }),
      pod('client', namespace, `127.${n}.0.1`, {}, 'Running', [`fd00:${n}:1::1`]),
      pod('db-0', namespace, `127.${n}.0.2`, { hostname: 'db-0', subdomain: 'db' }),
    ];
  }),
  // Objects that a tenant can create in order to learn about another: aliases for existing and for missing names.
  ...['web', 'none', 'db', 'db-0.db', '_http._tcp.web', 'alias'].map((name, i) =>
    service(`probe-${i}`, 'team-a', {
      type: 'ExternalName',
      externalName: `${name}.team-b.svc.cluster.local`,
    }),
  ),
  service('probe-ptr', 'team-a', { type: 'ExternalName', externalName: '1.2.96.10.in-addr.arpa' }),
  service('probe-case', 'team-a', {
    type: 'ExternalName',
    externalName: 'WEB.Team-B.SVC.Cluster.Local',
  }),
  service('probe-self', 'team-a', { type: 'ExternalName', externalName: 'web.rewritten.example' }),
  pod('agent', 'kube-system', address.node, { hostNetwork: true }),
  pod('done', 'team-b', address.gone, {}, 'Succeeded'),
];

const body = (port: number): string => `
  bind 127.0.0.1
  visibility cluster.local {
    allow from * to shared
    allow from kube-system to *
    deny from team-* @unknown to *
  }
  errors
  dns64
  autopath @kubernetes
  rewrite name exact web.rewritten.example web.team-b.svc.cluster.local
  rewrite name regex (.*)\\.short\\.example {1}.svc.cluster.local answer auto
  cache 30
  template ANY ANY made.example {
    answer "{{ .Name }} 60 IN CNAME web.team-b.svc.cluster.local."
  }
  transfer cluster.local in-addr.arpa {
    to *
  }
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    manifests ${directory}/objects
    pods verified
    fallthrough in-addr.arpa
  }
  forward . 127.0.0.1:${port} {
    max_fails 0
  }
`;

/** Sends messages as one client. The reply is null if there is none. */
type Ask = (messages: readonly Buffer[]) => Promise<readonly (Buffer | null)[]>;

describe('an attack on visibility', () => {
  let child: Child;
  let ports: number[];

  before(async () => {
    ports = await freePorts(7);
    const [dns, tls, https, grpc, proxied, upstream] = ports as [
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    mkdirSync(join(directory, 'objects'));
    writeFileSync(
      join(directory, 'objects', 'objects.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
    );
    writeFileSync(join(directory, 'cert.pem'), testCertificate);
    writeFileSync(join(directory, 'key.pem'), testKey);
    const files = `  tls ${directory}/cert.pem ${directory}/key.pem\n`;
    const proxy = `  proxyproto {\n    allow ${PROXY}/32\n    default ignore\n  }\n`;
    const inside = body(upstream);
    writeFileSync(
      join(directory, 'Corefile'),
      `.:${dns} {${inside}}
tls://.:${tls} {${inside}${files}}
https://.:${https} {${inside}${files}}
grpc://.:${grpc} {${inside}${files}}
.:${proxied} {${inside}${proxy}}
`,
    );
    child = start('ndots', [program, 'serve', '-conf', join(directory, 'Corefile')]);
    await printed(child, /ndots-\d/, 20_000);
  });
  after(async () => {
    await child.stop();
    rmSync(directory, { recursive: true });
  });

  const message = (
    name: string,
    type: number,
    { cls = 1, opcode = 0, flags = 0x0100, edns = '' as '' | 'plain' | 'do' | 'subnet' } = {},
  ): Buffer => {
    const header = Buffer.from([
      0,
      0,
      (flags >> 8) | (opcode << 3),
      flags & 255,
      0,
      1,
      0,
      0,
      0,
      0,
      0,
      edns === '' ? 0 : 1,
    ]);
    const question = Buffer.concat([
      Buffer.from(parseName(name)),
      Buffer.from([type >> 8, type & 255, cls >> 8, cls & 255]),
    ]);
    // Client subnet (RFC 7871) with the other tenant's pod.
    const option = edns === 'subnet' ? [0, 8, 0, 8, 0, 1, 32, 0, 127, 2, 0, 1] : [];
    const opt =
      edns === ''
        ? []
        : [0, 0, 41, 4, 0xd0, 0, 0, edns === 'do' ? 0x80 : 0, 0, 0, option.length, ...option];
    return Buffer.concat([header, question, Buffer.from(opt)]);
  };
  const withId = (bytes: Buffer, id: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy.writeUInt16BE(id, 0);
    return copy;
  };

  /** Sends queries in batches and matches replies by ID. A query that has no reply after a second will not get one. */
  const batched = async (
    messages: readonly Buffer[],
    send: (message: Buffer) => void,
    onReply: (take: (reply: Buffer) => void) => void,
  ): Promise<readonly (Buffer | null)[]> => {
    const replies: (Buffer | null)[] = messages.map(() => null);
    let wake = (): void => undefined;
    let come = 0;
    onReply((reply) => {
      const id = reply.readUInt16BE(0);
      if (replies[id] === null) come++;
      replies[id] ??= reply;
      wake();
    });
    for (let from = 0; from < messages.length; from += 100) {
      const batch = messages.slice(from, from + 100);
      const wanted = come + batch.length;
      batch.forEach((each, i) => send(withId(each, from + i)));
      for (;;) {
        const seen = come;
        if (come >= wanted) break;
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, 1000);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        if (come === seen) break;
      }
      come = wanted;
    }
    return replies;
  };

  const overUdp =
    (client: string, port: () => number, header: Buffer = Buffer.alloc(0)): Ask =>
    async (messages) => {
      const socket = createSocket('udp4');
      await new Promise<void>((resolve) => socket.bind(0, client, resolve));
      const replies = await batched(
        messages,
        (each) => socket.send(Buffer.concat([header, each]), port(), '127.0.0.1'),
        (take) => socket.on('message', take),
      );
      socket.close();
      return replies;
    };

  const overStream =
    (open: () => Socket, header: Buffer = Buffer.alloc(0)): Ask =>
    async (messages) => {
      const socket = open();
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => resolve());
      });
      socket.write(header);
      const stream = new StreamClient(socket);
      let going = true;
      const replies = await batched(
        messages,
        (each) => socket.write(framed(each)),
        (take) =>
          void (async () => {
            while (going) {
              const reply = await stream.next(3000);
              if (reply !== null) take(Buffer.from(reply));
            }
          })(),
      );
      going = false;
      socket.destroy();
      return replies;
    };

  const overHttp2 =
    (client: string, port: () => number, kind: 'https' | 'grpc'): Ask =>
    async (messages) => {
      const session: ClientHttp2Session = connectHttp2(`https://127.0.0.1:${port()}`, {
        createConnection: () =>
          connectTls({
            socket: tcp(client, port()),
            rejectUnauthorized: false,
            ALPNProtocols: ['h2'],
          }),
      });
      session.on('error', () => undefined);
      const one = (bytes: Buffer): Promise<Buffer | null> =>
        new Promise((resolve) => {
          const grpc = kind === 'grpc';
          const stream = session.request({
            ':method': 'POST',
            ':path': grpc ? '/coredns.dns.DnsService/Query' : '/dns-query',
            'content-type': grpc ? 'application/grpc' : 'application/dns-message',
            ...(grpc && { te: 'trailers' }),
          });
          const pieces: Buffer[] = [];
          stream.on('data', (piece: Buffer) => pieces.push(piece));
          stream.on('error', () => resolve(null));
          stream.on('close', () => {
            const all = Buffer.concat(pieces);
            const skip = grpc ? 5 + 1 + varintSize(all, 6) : 0;
            resolve(all.length - skip < 12 ? null : all.subarray(skip));
          });
          const length = bytes.length;
          const field =
            length < 128 ? Buffer.of(10, length) : Buffer.of(10, (length & 127) | 128, length >> 7);
          stream.end(
            grpc
              ? Buffer.concat([Buffer.of(0, 0, 0, 0, field.length + length), field, bytes])
              : bytes,
          );
        });
      const replies: (Buffer | null)[] = [];
      for (let from = 0; from < messages.length; from += 50)
        replies.push(...(await Promise.all(messages.slice(from, from + 50).map(one))));
      session.destroy();
      return replies;
    };

  const proxy1 = (claimed: string): Buffer =>
    Buffer.from(
      claimed.includes(':')
        ? `PROXY TCP6 ${claimed} ::1 1234 53\r\n`
        : `PROXY TCP4 ${claimed} 127.0.0.1 1234 53\r\n`,
    );
  const proxy2 = (claimed: readonly number[], datagram: boolean): Buffer =>
    Buffer.concat([
      Buffer.from('0d0a0d0a000d0a515549540a', 'hex'),
      Buffer.from([
        0x21,
        (claimed.length === 4 ? 0x10 : 0x20) | (datagram ? 2 : 1),
        0,
        2 * claimed.length + 4,
      ]),
      Buffer.from([
        ...claimed,
        ...claimed.map((_, i) => (i === claimed.length - 1 ? 1 : 0)),
        4,
        0,
        0,
        53,
      ]),
    ]);
  const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 1, 0, 1];
  const six = [0xfd, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

  const tcp = (client: string, port: number): Socket =>
    connect({ host: '127.0.0.1', port, localAddress: client });
  const tls = (client: string): Socket =>
    connectTls({ socket: tcp(client, ports[1]!), rejectUnauthorized: false });
  /** The client and its transport. All of these clients see `shared` and at most `own`. */
  const ways: Readonly<
    Record<
      string,
      {
        readonly own: string;
        readonly ask: Ask;
        readonly few?: boolean;
        readonly completes?: string;
      }
    >
  > = {
    'a pod, UDP': { own: 'team-a', ask: overUdp(address.pod, () => ports[0]!) },
    'a pod, TCP': { own: 'team-a', ask: overStream(() => tcp(address.pod, ports[0]!)) },
    'a node, UDP': {
      own: '',
      completes: 'kube-system',
      ask: overUdp(address.node, () => ports[0]!),
    },
    'a node, TCP': {
      own: '',
      completes: 'kube-system',
      ask: overStream(() => tcp(address.node, ports[0]!)),
      few: true,
    },
    'a stranger, UDP': { own: '', ask: overUdp(address.stranger, () => ports[0]!) },
    'the address of a pod that has ended, UDP': {
      own: '',
      ask: overUdp(address.gone, () => ports[0]!),
    },
    'a pod, TLS': {
      own: 'team-a',
      ask: overStream(() => tls(address.pod)),
      few: true,
    },
    'a node, TLS': {
      own: '',
      completes: 'kube-system',
      ask: overStream(() => tls(address.node)),
      few: true,
    },
    'a pod, HTTPS': {
      own: 'team-a',
      ask: overHttp2(address.pod, () => ports[2]!, 'https'),
      few: true,
    },
    'a stranger, HTTPS': {
      own: '',
      ask: overHttp2(address.stranger, () => ports[2]!, 'https'),
      few: true,
    },
    'a pod, gRPC': {
      own: 'team-a',
      ask: overHttp2(address.pod, () => ports[3]!, 'grpc'),
      few: true,
    },
    'a pod that claims another address, PROXY over TCP': {
      own: 'team-a',
      ask: overStream(() => tcp(address.pod, ports[4]!), proxy1(SEES_ALL)),
      few: true,
    },
    'a pod that claims another address, PROXY over UDP': {
      own: 'team-a',
      ask: overUdp(address.pod, () => ports[4]!, proxy2([127, 4, 0, 1], true)),
      few: true,
    },
    'a pod behind a proxy, TCP': {
      own: 'team-a',
      ask: overStream(() => tcp(PROXY, ports[4]!), proxy1(address.pod)),
      few: true,
    },
    'a pod behind a proxy, UDP': {
      own: 'team-a',
      ask: overUdp(PROXY, () => ports[4]!, proxy2([127, 1, 0, 1], true)),
      few: true,
    },
    'an address of IPv4 as IPv6 behind a proxy': {
      own: 'team-a',
      ask: overStream(() => tcp(PROXY, ports[4]!), proxy2(mapped, false)),
      few: true,
    },
    'the same as text': {
      own: 'team-a',
      ask: overStream(() => tcp(PROXY, ports[4]!), proxy1('::ffff:127.1.0.1')),
      few: true,
    },
    "a pod's other address, behind a proxy": {
      own: 'team-a',
      ask: overUdp(PROXY, () => ports[4]!, proxy2(six, true)),
      few: true,
    },
    'a proxy itself': { own: '', ask: overUdp(PROXY, () => ports[4]!), few: true },
  };

  /** Names that would reveal `team-b` and `kube-system`, and equally long counterparts that do not exist. */
  const names = (namespace: string, n: number): readonly (readonly [string, string])[] => {
    const nobody = namespace.slice(0, -1) + 'z';
    const twin = (name: string): readonly [string, string] => [
      name.replaceAll('@', namespace),
      name.replaceAll('@', nobody),
    ];
    const spelled = [
      'web.@.svc.cluster.local.',
      'db.@.svc.cluster.local.',
      'db-0.db.@.svc.cluster.local.',
      `127-${n}-0-2.db.@.svc.cluster.local.`,
      '_http._tcp.web.@.svc.cluster.local.',
      '_http._tcp.db.@.svc.cluster.local.',
      'alias.@.svc.cluster.local.',
      'out.@.svc.cluster.local.',
      '@.svc.cluster.local.',
      '*.@.svc.cluster.local.',
      'any.@.svc.cluster.local.',
      `127-${n}-0-1.@.pod.cluster.local.`,
      '@.pod.cluster.local.',
      '*.@.pod.cluster.local.',
      'dns.web.@.svc.cluster.local.',
      'a.b.c.web.@.svc.cluster.local.',
      '_kerberos._udp.@.svc.cluster.local.',
      'web.@.short.example.',
      // As completed by a search path.
      'web.@.team-a.svc.cluster.local.',
      'web.@.svc.team-a.svc.cluster.local.',
      'web.@.svc.cluster.local.team-a.svc.cluster.local.',
      'web.@.svc.cluster.local.svc.cluster.local.',
      'web.@.svc.cluster.local.cluster.local.',
      'web.@.svc.svc.cluster.local.',
      'web.@.cluster.local.',
      'web.@.',
      'WEB.@.SVC.CLUSTER.LOCAL.',
      String.raw`w\101b.@.svc.cluster.local.`,
      String.raw`web\.@.svc.cluster.local.`,
    ];
    return spelled.map(twin);
  };
  /** Pairs of names, the first of which leads to a name in `team-b`. The second leads to nothing. */
  const leading: readonly (readonly [string, string])[] = [
    ['probe-0.team-a.svc.cluster.local.', 'probe-1.team-a.svc.cluster.local.'],
    ['probe-2.team-a.svc.cluster.local.', 'probe-1.team-a.svc.cluster.local.'],
    ['probe-3.team-a.svc.cluster.local.', 'probe-1.team-a.svc.cluster.local.'],
    ['probe-4.team-a.svc.cluster.local.', 'probe-1.team-a.svc.cluster.local.'],
    ['probe-5.team-a.svc.cluster.local.', 'probe-1.team-a.svc.cluster.local.'],
  ];
  const alone: readonly string[] = [
    'alias.team-a.svc.cluster.local.',
    'probe-case.team-a.svc.cluster.local.',
    'probe-ptr.team-a.svc.cluster.local.',
    'probe-self.team-a.svc.cluster.local.',
    'alias.shared.svc.cluster.local.',
    'web.rewritten.example.',
    'made.example.',
    'x.made.example.',
    'cluster.local.',
    'svc.cluster.local.',
    'pod.cluster.local.',
    '*.svc.cluster.local.',
    '*.*.svc.cluster.local.',
    'web.*.svc.cluster.local.',
    'any.any.svc.cluster.local.',
    'ns.dns.cluster.local.',
    'dns-version.cluster.local.',
    'in-addr.arpa.',
    '10.in-addr.arpa.',
    '2.96.10.in-addr.arpa.',
    'ip6.arpa.',
    '.',
    // A tenant may learn that an address belongs to a service (see the page), but the service's name is secret.
    ...[2, 4].flatMap((n) => [
      `1.${n}.96.10.in-addr.arpa.`,
      `2.0.${n}.127.in-addr.arpa.`,
      reversed(`fd00000${n}000000000000000000000001`),
      reversed(`0064ff9b00000000000000000a600${n}01`),
    ]),
    'version.bind.',
    'hostname.bind.',
  ];
  const types = [
    TYPE.A,
    TYPE.AAAA,
    TYPE.SRV,
    TYPE.TXT,
    TYPE.PTR,
    TYPE.CNAME,
    TYPE.NS,
    TYPE.SOA,
    TYPE.MX,
    TYPE.ANY,
    TYPE.HTTPS,
    TYPE.SVCB,
    TYPE.DS,
    TYPE.DNSKEY,
    TYPE.NSEC,
    TYPE.RRSIG,
    TYPE.HINFO,
    TYPE.AXFR,
    TYPE.IXFR,
    TYPE.NAPTR,
    TYPE.DNAME,
    0,
    41,
    249,
    250,
    253,
    254,
    65280,
    65535,
  ];
  const fewTypes = [TYPE.A, TYPE.AAAA, TYPE.SRV, TYPE.PTR, TYPE.ANY, TYPE.AXFR];

  // If `autopath` treats a node as a pod in `completes`, it completes names in that namespace, but not their
  // counterparts.
  interface Question {
    readonly text: string;
    readonly bytes: Buffer;
    /** The index of the question whose reply must look the same, or -1 if there is none. */
    readonly twin: number;
  }

  const questionsFor = (few: boolean, completes = ''): readonly Question[] => {
    const questions: Question[] = [];
    const add = (
      text: string,
      name: string,
      type: number,
      options: Parameters<typeof message>[2] = {},
      twin = -1,
    ): number =>
      questions.push({
        text: `${text} ${name} TYPE${type} ${JSON.stringify(options)}`,
        bytes: message(name, type, options),
        twin,
      }) - 1;
    const pairs = [...names('team-b', 2), ...names('kube-system', 4), ...leading];
    for (const [name, other] of pairs)
      for (const type of few ? fewTypes : types) {
        const completed = completes !== '' && name.toLowerCase().includes(completes);
        const twin = add('twin', other, type);
        add('', name, type, {}, completed ? -1 : twin);
        if (type === TYPE.A || type === TYPE.SRV || type === TYPE.ANY)
          for (const options of [
            { edns: 'plain' },
            { edns: 'do' },
            { edns: 'subnet' },
            { flags: 0 },
            { flags: 0x0130 },
            { cls: 3 },
            { cls: 255 },
            { cls: 4 },
            { cls: 254 },
            { opcode: 4 },
            { opcode: 5 },
            { opcode: 2 },
            { opcode: 1 },
            { opcode: 6 },
          ] as const) {
            const same = add('twin', other, type, options);
            add('', name, type, options, completed ? -1 : same);
          }
      }
    for (const name of alone) for (const type of few ? fewTypes : types) add('', name, type);
    return questions;
  };

  /** The secrets: names, and the addresses of services and pods, including IPv4 addresses in IPv6 form. */
  const secrets = (own: string): RegExp => {
    const hidden = [
      ['team-a', 1],
      ['team-b', 2],
      ['kube-system', 4],
    ].filter(([namespace]) => namespace !== own);
    const all = hidden.flatMap(([namespace, n]) => [
      `${namespace}\\.(?:svc|pod|example)`,
      `10\\.96\\.${n}\\.`,
      `127\\.${n}\\.0\\.`,
      `192\\.0\\.2\\.${n}$`,
      `fd00:${n}:`,
      `a60:${n}0`,
      `7f0${n}:`,
    ]);
    return new RegExp(all.join('|'), 'im');
  };

  const shown = (reply: Buffer): string => {
    const text = printMessage({ ...readMessage(reply), id: 0, question: [] });
    // In a negative answer, the serial is the time.
    return text.includes('status: NXDOMAIN')
      ? text.replaceAll(/(SOA\s+\S+\s+\S+)\s+\d+/g, '$1 N')
      : text;
  };

  /** Ignores letter case and the age of cached replies. */
  const same = (one: string, other: string): boolean => {
    const plain = (text: string): string =>
      text.replaceAll(/(?<=\s)\d+(?=\s+IN\s)/g, 'T').toLowerCase();
    return plain(one) === plain(other);
  };

  const leaksOf = (
    questions: readonly Question[],
    replies: readonly (Buffer | null)[],
    own: string,
  ): readonly string[] => {
    const secret = secrets(own);
    return questions.flatMap(({ text, twin }, i) => {
      const reply = replies[i] ?? null;
      const found = reply === null ? '(silence)' : shown(reply);
      if (secret.test(found)) return [`${text}: ${found}`];
      if (twin < 0) return [];
      const other = replies[twin] ?? null;
      const expected = other === null ? '(silence)' : shown(other);
      return same(found, expected) ? [] : [`${text}: ${found}\nnot as of the twin: ${expected}`];
    });
  };

  let asked = 0;
  for (const [way, { own, ask, few = false, completes }] of Object.entries(ways))
    test(`nothing about other tenants can be learned over ${way}`, async (t) => {
      const questions = questionsFor(few, completes);
      const messages = questions.map(({ bytes }) => bytes);
      // Caches contain answers for other clients.
      const all = await overUdp(SEES_ALL, () => ports[0]!)(messages.slice(0, 400));
      assert.ok(
        all.filter((reply) => reply !== null && secrets('').test(shown(reply))).length > 10,
      );
      for (let round = 0; round < (few ? 1 : 2); round++) {
        const replies = await ask(messages);
        const leaks = leaksOf(questions, replies, own);
        const answered = replies.filter((reply) => reply !== null).length;
        asked += questions.length;
        t.diagnostic(
          `${questions.length} questions, ${answered} replies, ${leaks.length} leaks; ${asked} questions in all`,
        );
        assert.ok(answered > questions.length * 0.7, `${answered} of ${questions.length} answered`);
        assert.deepEqual(leaks.slice(0, 5), []);
      }
      // The test only proves something if at least one name is visible.
      const [common, mine] = await ask([
        message('web.shared.svc.cluster.local.', TYPE.A),
        message('web.team-a.svc.cluster.local.', TYPE.A),
      ]);
      assert.equal(readMessage(common!).answer.length, 1);
      assert.equal(readMessage(mine!).rcode, own === '' ? RCODE.NXDOMAIN : RCODE.NOERROR);
    });
});

/** Nibbles, reversed, in ip6.arpa. */
function reversed(digits: string): string {
  assert.equal(digits.length, 32, digits);
  return `${digits.split('').toReversed().join('.')}.ip6.arpa.`;
}

function varintSize(bytes: Buffer, at: number): number {
  let size = 1;
  while ((bytes[at + size - 1] ?? 0) >= 0x80) size++;
  return size;
}
