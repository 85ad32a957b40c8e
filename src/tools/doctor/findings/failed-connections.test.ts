import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { diagnose } from '../diagnosis.ts';
import { everything } from '../part-diagnosis.ts';
import { captureVerdict } from '../report/capture-verdict.ts';
import {
  addressRecord,
  back,
  dnsMessage,
  icmpError,
  TCP,
  tcpPacket,
  udpPacket,
  type Captured,
  type Ends,
} from '../../../../test/kit/packets.ts';
import { given, type Given } from '../../../../test/kit/given-answers.ts';
import { testCertificate } from '../../../../test/kit/certificate.ts';
import { look } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [CLIENT, SERVER] = ['10.244.1.7', '10.96.88.64'] as const;
const NAME = 'payments.shop.svc.cluster.local.';
const hello = Buffer.from('16030100c8010000c40303', 'hex');

/** Packets of a connection of one way, milliseconds after its SYN. */
type Course = (way: Ends) => readonly (readonly [afterMs: number, packet: Uint8Array])[];

const opens: Course = (way) => [
  [0, tcpPacket(way, 1, TCP.SYN)],
  [0.2, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)],
];
const says = (way: Ends, payload: Uint8Array): Uint8Array =>
  tcpPacket(way, 2, TCP.PSH | TCP.ACK, payload);
const courses: Readonly<Record<string, Course>> = {
  opens,
  silent: (way) => [0, 1000].map((ms) => [ms, tcpPacket(way, 1, TCP.SYN)] as const),
  refused: (way) => [
    [0, tcpPacket(way, 1, TCP.SYN)],
    [0.2, tcpPacket(back(way), 1, TCP.RST | TCP.ACK)],
  ],
  rejected: (way) => [
    [0, tcpPacket(way, 1, TCP.SYN)],
    [0.2, icmpError('10.244.1.1', tcpPacket(way, 1, TCP.SYN), 3, 13, CLIENT)],
  ],
  alert: (way) => [
    ...opens(way),
    [1, says(way, hello)],
    [2, says(back(way), Buffer.from('15030300020228', 'hex'))],
  ],
  unavailable: (way) => [
    ...opens(way),
    [1, says(way, Buffer.from('GET / HTTP/1.1\r\n\r\n'))],
    [2, says(back(way), Buffer.from('HTTP/1.1 503 Service Unavailable\r\n\r\n'))],
  ],
  late: (way) => [
    ...opens(way),
    [1, says(way, Buffer.from('GET / HTTP/1.1\r\n\r\n'))],
    [5001, says(back(way), Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))],
  ],
  normal: (way) => [
    ...opens(way),
    [1, says(way, hello)],
    [2, says(back(way), Buffer.from('160303', 'hex'))],
    // The client closes with unread data.
    [3, tcpPacket(way, 9, TCP.RST)],
  ],
};

/** Thirty lookups that are answered, each followed by a connection. @param port of the client's first connection */
function packets(course: Course, count = 30, server: string = SERVER): Captured[] {
  return inOrder(
    Array.from({ length: 30 }, (_, i) => {
      const startMs = i * 1000;
      const way = { from: CLIENT, fromPort: 41_000 + i, to: server, toPort: 443 };
      return [
        ...asked(startMs, ends(CLIENT, 30_000 + i), NAME, i + 1, { address: server }),
        ...(i < count ? course(way) : opens(way)).map(([ms, bytes]) => at(startMs + 1 + ms, bytes)),
      ];
    }),
  );
}

function verdictOf(all: readonly Captured[]): { verdict: string; seen: readonly string[] } {
  const [observed] = look(all, [], [everything]);
  const diagnosis = diagnose(observed!);
  const found = diagnosis.findings.find(({ code }) => code === 'ND3091');
  return { verdict: captureVerdict(observed!, diagnosis), seen: found?.seen ?? [] };
}

describe('“Not DNS” names the connection that fails after the lookup', () => {
  for (const [name, words] of [
    // The last two may still be answered.
    ['silent', /28 of 30 .* got no reply to their SYN/],
    ['refused', /30 of 30 .* were refused \(RST\)/],
    ['rejected', /30 of 30 .* were rejected in transit \(ICMP\)/],
    ['alert', /30 of 30 .* TLS alert from the server \(handshake_failure\)/],
    ['unavailable', /30 of 30 .* got HTTP 503/],
    ['late', /30 of 30 .* waited for the first reply, up to 5\.0 s/],
  ] as const)
    test(name, () => {
      const { verdict, seen } = verdictOf(packets(courses[name]!));
      assert.match(verdict, /^Not DNS, as far as this shows: every query got a reply/);
      assert.match(verdict, words);
      assert.match(verdict, /from 10\.244\.1\.7 to 10\.96\.88\.64 port 443 \(payments\.shop\.svc/);
      assert.match(seen[0] ?? '', words);
    });
});

test('a capture at the pod that is read first does not replace the address that the client connects to', () => {
  const asking: Course = (way) => [
    ...opens(way),
    [1, says(way, Buffer.from('GET / HTTP/1.1\r\n\r\n'))],
  ];
  const all = Array.from({ length: 30 }, (_, i) => {
    const way = { from: CLIENT, fromPort: 41_000 + i, to: SERVER, toPort: 443 };
    // The reply is lost on the way to the client.
    const behind = { ...way, to: '10.244.2.45' };
    const numbered = (ends: Ends) => tcpPacket(ends, 1000 + i, TCP.SYN);
    const startMs = i * 1000 + 10;
    return {
      pod: [
        at(startMs + 0.04, numbered(behind)),
        ...asking(behind)
          .slice(1)
          .map(([ms, bytes]) => at(startMs + ms, bytes)),
        at(startMs + 3, says(back(behind), Buffer.from('HTTP/1.1 200 OK\r\n'))),
      ],
      client: [
        ...asked(startMs - 5, ends(CLIENT, 30_000 + i), NAME, i + 1, { address: SERVER }),
        at(startMs, numbered(way)),
        ...asking(way)
          .slice(1)
          .map(([ms, bytes]) => at(startMs + ms, bytes)),
      ],
    };
  });
  const { verdict } = verdictOf([
    ...all.flatMap(({ pod }) => pod),
    ...all.flatMap(({ client }) => client),
  ]);
  assert.match(
    verdict,
    /connections from 10\.244\.1\.7 to 10\.96\.88\.64 port 443 .* no reply to their request/,
  );
});

test('replies that a server retransmits again and again are lost because of their size', () => {
  const stuck: Course = (way) => [
    ...opens(way),
    [1, says(way, Buffer.from('GET / HTTP/1.1\r\n\r\n'))],
  ];
  const behind: Ends = { from: CLIENT, fromPort: 41_000, to: '10.244.2.45', toPort: 443 };
  const again = [0, 1, 2].flatMap((nth) =>
    [0, 200, 600, 1500, 3100].map((ms) => {
      const way = { ...behind, fromPort: behind.fromPort + nth };
      const payload = new Uint8Array(1448);
      return at(nth * 1000 + 3 + ms, tcpPacket(back(way), 2, TCP.ACK, payload));
    }),
  );
  const [observed] = look(inOrder([packets(stuck), again]), [], [everything]);
  const found = diagnose(observed!).findings.find(({ code }) => code === 'ND3091');
  assert.match(
    found?.seen.join(' ') ?? '',
    /10\.244\.2\.45 port 443 retransmitted the same segment/,
  );
  assert.match(found?.why ?? '', /path MTU black hole/);
});

test('the advice fits the way in which the connection fails', () => {
  const found = (course: Course) => {
    const [observed] = look(packets(course), [], [everything]);
    return diagnose(observed!).findings.find(({ code }) => code === 'ND3091')!;
  };
  const tls = found(courses['alert']!);
  assert.match(tls.why, /connection opens, but its TLS handshake fails/);
  assert.match(tls.prove, /^run openssl s_client -connect 10\.96\.88\.64:443 -servername payments/);
  const late = found(courses['late']!);
  assert.match(late.why, /opens at once, but the program behind it replies late/);
  assert.match(
    late.prove,
    /^run curl .*time_starttransfer.* http:\/\/10\.96\.88\.64:443\/ in the pod/,
  );
  const failing = found(courses['unavailable']!);
  assert.match(failing.why, /replies with an error/);
  assert.match(found(courses['silent']!).prove, /^run nc -vz/);
  for (const { fix } of [tls, late, failing]) assert.doesNotMatch(fix[0]!, /endpoints/);
});

test('connections that open, exchange data and are closed with a reset do not fail', () => {
  const { verdict, seen } = verdictOf(packets(courses['normal']!));
  assert.match(verdict, /^Not DNS/);
  assert.match(verdict, /All 30 TCP connections after the lookups were accepted/);
  assert.deepEqual(seen, []);
});

test('two refused connections of thirty are not reported', () => {
  assert.deepEqual(verdictOf(packets(courses['refused']!, 2)).seen, []);
});

test('another address of the same name works: the answer may be out of date, so it may be DNS', () => {
  const [old, fresh] = [
    packets(courses['silent']!),
    packets(opens, 30, '10.96.88.65').map(({ timeMs, bytes }) => ({
      timeMs: timeMs + 40_000,
      bytes,
    })),
  ];
  const { verdict } = verdictOf([...old, ...fresh]);
  assert.doesNotMatch(verdict, /Not DNS/);
  assert.match(verdict, /10\.96\.88\.65, another address of this name/);
});

test('a DNS server whose own connections fail is not “Not DNS”', () => {
  const way = (i: number): Ends => ({
    from: '10.244.2.9',
    fromPort: 50_000 + i,
    to: '10.0.0.2',
    toPort: 853,
  });
  const all = inOrder([
    packets(opens),
    Array.from({ length: 10 }, (_, i) => at(i * 1500, tcpPacket(way(i), 1, TCP.SYN))),
  ]);
  const { verdict } = verdictOf(all);
  assert.doesNotMatch(verdict, /Not DNS/);
  assert.match(verdict, /10\.0\.0\.2 port 853/);
});

test('IPv6 does not work if its connections fail while IPv4 ones open', () => {
  const six = { from: 'fd00::7', to: '2001:db8::1' };
  const all = inOrder([
    packets(opens),
    Array.from({ length: 10 }, (_, i) =>
      [0, 1000].map((ms) =>
        at(i * 1500 + ms, tcpPacket({ ...six, fromPort: 50_000 + i, toPort: 443 }, 1, TCP.SYN)),
      ),
    ).flat(),
  ]);
  assert.match(verdictOf(all).verdict, /IPv6 does not work, because 10 of 10/);
});

test('a failing address that the answer itself may be wrong about is not “Not DNS”', () => {
  const failing = (name: string, server: string): string =>
    verdictOf(
      inOrder(
        Array.from({ length: 30 }, (_, i) => {
          const way = { from: CLIENT, fromPort: 41_000 + i, to: server, toPort: 443 };
          const reply = asked(i * 1000, ends(CLIENT, 30_000 + i), name, i, { address: server });
          return [
            ...reply,
            ...courses['silent']!(way).map(([ms, each]) => at(i * 1000 + ms, each)),
          ];
        }),
      ),
    ).verdict;
  assert.match(failing('pay.example.com.', '203.0.113.9'), /^Not DNS/);
  const mesh = failing('pay.prod.global.', '240.0.0.7');
  assert.match(
    mesh,
    /^Nothing critical .* 240\.0\.0\.7, the answer for pay\.prod\.global\., is reserved/,
  );
});

test('answers without connections to their addresses prove only that replies arrived', () => {
  assert.match(verdictOf(packets(() => [])).verdict, /^Every query got a reply, .* does not prove/);
});

test('a SYN that is seen again behind a translation is one connection', () => {
  const two = inOrder([
    packets(opens),
    [500, 2500].flatMap((ms, i) => {
      const pod = { from: CLIENT, fromPort: 51_000 + i, to: SERVER, toPort: 8080 };
      const node = { ...pod, from: '192.168.50.11', fromPort: 61_000 + i };
      return [pod, node].map((way, hop) => at(ms + hop, tcpPacket(way, 777 + i, TCP.SYN)));
    }),
  ]);
  assert.deepEqual(verdictOf(two).seen, []);
});

test('an address from a DNS proxy on loopback, which rules redirect queries to, names the proxy', () => {
  const redirected = Array.from({ length: 25 }, (_, i) => {
    const port = 40_000 + i;
    const toProxy = { from: CLIENT, fromPort: port, to: '127.0.0.1', toPort: 15_053 };
    // The reply has the address that the program asked.
    const fromService = { from: '10.96.0.10', fromPort: 53, to: CLIENT, toPort: port };
    const message = { id: i + 1, reply: true, answer: [addressRecord(NAME, SERVER)] };
    const syn = { from: CLIENT, fromPort: 50_000 + i, to: SERVER, toPort: 80 };
    return [
      at(i * 3000, udpPacket(toProxy, dnsMessage(NAME, 'A', { id: i + 1 }))),
      at(i * 3000 + 1, udpPacket(fromService, dnsMessage(NAME, 'A', message))),
      ...courses['silent']!(syn).map(([ms, packet]) => at(i * 3000 + 2 + ms, packet)),
    ];
  });
  const { seen, verdict } = verdictOf(inOrder(redirected));
  assert.match(seen.join(' '), /answered by 127\.0\.0\.1:15053, a DNS proxy/);
  assert.match(verdict, /DNS proxy in the pod, 127\.0\.0\.1:15053/);
});

/** Two DNS pods in turn; connections to the address that one of them returns get no reply. */
function disagreeing(isByServer: boolean, isAlways: boolean): Captured[] {
  return inOrder(
    Array.from({ length: 24 }, (_, i) => {
      const startMs = i * 1000;
      const isOld = isAlways ? i % 2 === 0 : i >= 12;
      const address = isOld ? '10.96.88.65' : SERVER;
      const [query, reply] = asked(startMs, ends(CLIENT, 30_000 + i), NAME, i + 1, {
        address,
        tookMs: 1,
      });
      const pod = ends(CLIENT, 30_000 + i, isOld ? '10.244.2.6' : '10.244.2.5');
      const behind = asked(startMs + 0.1, pod, NAME, i + 1, { address, tookMs: 0.5 });
      const way = { from: CLIENT, fromPort: 41_000 + i, to: address, toPort: 443 };
      const course = isOld ? courses['silent']! : opens;
      return [
        query!,
        ...(isByServer ? behind : []),
        reply!,
        ...course(way).map(([ms, bytes]) => at(startMs + 2 + ms, bytes)),
      ];
    }),
  );
}

test('the DNS pod that returns the failing address is named', () => {
  const { seen } = verdictOf(disagreeing(true, true));
  assert.match(
    seen[0]!,
    /10\.244\.2\.6 returned 10\.96\.88\.65 .*, while 10\.244\.2\.5 returned 10\.96\.88\.64/,
  );
});

test('a client sees that its answers alternate, but not if the address changed once', () => {
  assert.match(verdictOf(disagreeing(false, true)).seen[0]!, /returned two answers in turn/);
  assert.doesNotMatch(verdictOf(disagreeing(false, false)).seen.join(' '), /in turn/);
});

/** A server's first messages: an empty ServerHello, and its certificate. */
function serverFlight(der: Uint8Array): Uint8Array {
  const u24 = (value: number): number[] => [value >> 16, (value >> 8) & 255, value & 255];
  const record = (type: number, body: readonly number[]): number[] => {
    const message = [type, ...u24(body.length), ...body];
    return [22, 3, 3, message.length >> 8, message.length & 255, ...message];
  };
  const certificates = [...u24(der.length + 3), ...u24(der.length), ...der];
  return Uint8Array.from([...record(2, [3, 3]), ...record(11, certificates)]);
}

/** DNS over TLS connections that the client ends with this alert. @param until the end of the certificate's validity; null: no certificate is sent */
function overTls(until: string | null, alert: number): Captured[] {
  const pem = testCertificate.replaceAll(/-----[A-Z ]+-----|\s/g, '');
  const der = Buffer.from(pem, 'base64');
  der.write(until ?? '', der.indexOf('21261028100447Z'), 'latin1');
  return inOrder(
    Array.from({ length: 10 }, (_, i) => {
      const way = { from: CLIENT, fromPort: 41_000 + i, to: '10.0.0.53', toPort: 853 };
      const course = [
        ...opens(way),
        [1, says(way, hello)] as const,
        ...(until === null ? [] : [[2, says(back(way), serverFlight(der))] as const]),
        [3, says(way, Uint8Array.from([21, 3, 3, 0, 2, 2, alert]))] as const,
      ];
      return course.map(([ms, bytes]) => at(i * 1000 + ms, bytes));
    }),
  );
}

test('an upstream’s certificate that has expired is named with its date', () => {
  const found = (until: string | null, alert: number) =>
    diagnose(look(overTls(until, alert), [], [everything])[0]!).findings[0]!;
  const expired = found('20250101000000Z', 42);
  assert.equal(expired.code, 'ND4016');
  assert.match(expired.title, /certificate of an upstream has expired: 10\.0\.0\.53:853/);
  assert.match(expired.seen[0]!, /sent expired on 2025-01-01 00:00 UTC/);
  assert.match(found(null, 45).title, /has expired/);
  assert.match(found('21261028100447Z', 42).title, /because of its certificate or protocol/);
});

test('a program that keeps an old address is named, although another one on its pod follows DNS', () => {
  const [old, now, neighbour] = ['10.244.2.5', '10.244.3.6', '10.244.1.8'];
  const addressAt = (second: number): string => (second < 20 ? old : now);
  const lookups = Array.from({ length: 30 }, (_, i): Given => ({
    ...{ atMs: i * 2000, name: NAME, client: i % 2 === 0 ? CLIENT : neighbour, ttl: 5 },
    address: addressAt(i * 2),
  }));
  const connect = (from: string, to: string, second: number, course: Course): Captured[] =>
    course({ from, fromPort: 41_000 + second, to, toPort: 443 }).map(([ms, bytes]) =>
      at(second * 1000 + 500 + ms, bytes),
    );
  const connections = Array.from({ length: 58 }, (_, second) => [
    ...(second % 4 === 1
      ? connect(CLIENT, old, second, second < 20 ? opens : courses['silent']!)
      : []),
    ...(second % 4 === 2 ? connect(CLIENT, addressAt(second), second, opens) : []),
    // Before DNS changed, the neighbour tried the old address once.
    ...(second % 4 === 3
      ? connect(neighbour, addressAt(second), second, second === 19 ? courses['silent']! : opens)
      : []),
  ]);
  const all = inOrder([given(lookups), ...connections]);
  const [found] = diagnose(look(all, [], [everything])[0]!).findings;
  assert.equal(found?.code, 'ND3091');
  assert.match(found.title, /old address beyond its TTL, although DNS returns the new one/);
  assert.deepEqual([...found.counted!.keys()], [CLIENT]);
  assert.doesNotMatch(found.seen.join(' '), /10\.244\.1\.8/);
});

test('an old address that a client keeps is named, although the client never connects to the new one', () => {
  const [old, now, third] = ['10.244.2.5', '10.244.3.6', '10.244.4.7'];
  const found = (addressAt: (second: number) => string) => {
    const lookups = Array.from({ length: 15 }, (_, i): Given => ({
      ...{ atMs: i * 4000, name: NAME, client: CLIENT, ttl: 5 },
      address: addressAt(i * 4),
    }));
    const connections = Array.from({ length: 28 }, (_, nth) => {
      const course = nth < 10 ? opens : courses['silent']!;
      const way = { from: CLIENT, fromPort: 41_000 + nth, to: old, toPort: 443 };
      return course(way).map(([ms, bytes]) => at(nth * 2000 + 500 + ms, bytes));
    });
    const all = inOrder([given(lookups), ...connections]);
    return diagnose(look(all, [], [everything])[0]!).findings[0]!;
  };
  const once = found((second) => (second < 20 ? old : now));
  assert.match(once.title, /old address beyond its TTL, although DNS returns the new one/);
  assert.match(once.seen.join(' '), /returns 10\.244\.3\.6 .* no connection to that address/);
  assert.equal(once.severity, 'critical');
  // Answers that alternate are several endpoints, one of which fails.
  const turns = found((second) => (second < 8 ? old : second % 8 === 0 ? now : third));
  assert.doesNotMatch(turns.title, /old address/);
});

test('an IPv6 address beside the IPv4 address that fails is not a newer one', () => {
  const lookups = Array.from({ length: 12 }, (_, nth): Given => ({
    ...{ atMs: nth * 250, name: NAME, client: `10.244.1.${7 + (nth >> 1)}` },
    ...(nth % 2 === 0
      ? { type: 'A', address: '10.244.2.5' }
      : { type: 'AAAA', address: '2001:db8::5' }),
  }));
  const connections = Array.from({ length: 30 }, (_, nth) => {
    const way = { from: CLIENT, fromPort: 41_000 + nth, to: '10.244.2.5', toPort: 443 };
    const course = courses[nth < 12 ? 'opens' : 'refused']!;
    return course(way).map(([ms, bytes]) => at(4000 + nth * 5000 + ms, bytes));
  });
  const all = inOrder([given(lookups), ...connections]);
  for (const { title, seen } of diagnose(look(all, [], [everything])[0]!).findings) {
    assert.doesNotMatch(title, /old address/);
    assert.doesNotMatch(seen.join(' '), /2001:db8::5/);
  }
});
