import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Remarks } from '../../capture/read/packets/remarks.ts';
import { QueryLogReader } from '../../capture/read/records/query-log.ts';
import { Observations } from '../observe/observations.ts';
import { SearchDomains } from '../../capture/pair/search-walk.ts';
import { diagnose, type Diagnosis } from '../diagnosis.ts';

/** Findings from logs. */
function ofLog(text: string): Diagnosis {
  const observed = new Observations(new SearchDomains());
  const reader = new QueryLogReader(
    {
      exchange: (exchange) => observed.exchange(exchange),
      failure: (failure) => {
        observed.failure(failure);
        observed.logged.failure(failure);
      },
      other: ({ text: line, timeMs, pod }) => {
        observed.counters.line(line);
        observed.logged.line(line, timeMs, pod);
      },
      entry: () => undefined,
    },
    new Remarks(),
  );
  reader.push(Buffer.from(text));
  reader.end();
  return diagnose(observed);
}
const shown = ({ findings }: Diagnosis): string[] =>
  findings.map(({ code, subject = '', severity }) => `${code} ${subject} ${severity}`);

/** As CoreDNS 1.14.7 wrote them, but for names and addresses. */
const ofQueries: readonly (readonly [string, string])[] = [
  ['read udp 10.0.0.1:46950->192.0.2.53:53: i/o timeout', 'ND4008 192.0.2.53:53'],
  ['read tcp 10.0.0.1:34162->192.0.2.53:53: i/o timeout', 'ND4008 192.0.2.53:53'],
  ['dial tcp 192.0.2.53:853: i/o timeout', 'ND4008 192.0.2.53:853'],
  ['read udp [fd00::7]:40000->[2001:db8::1]:53: i/o timeout', 'ND4008 [2001:db8::1]:53'],
  ['read udp 10.0.0.1:42695->192.0.2.53:53: read: connection refused', 'ND4011 192.0.2.53:53'],
  ['dial tcp 192.0.2.53:53: connect: connection refused', 'ND4011 192.0.2.53:53'],
  ['dial udp 192.0.2.1:53: connect: network is unreachable', 'ND4012 192.0.2.1:53'],
  ['dial udp [2001:db8::1]:53: connect: network is unreachable', 'ND4012 [2001:db8::1]:53'],
  ['dial udp 198.51.100.1:53: connect: no route to host', 'ND4012 198.51.100.1:53'],
  [
    'write udp 10.0.0.1:42001->192.0.2.53:53: write: operation not permitted',
    'ND4013 192.0.2.53:53',
  ],
  ['dns: overflowing header size', 'ND4014 '],
  ['dns: overflow unpacking uint16', 'ND4014 '],
  ['dns: bad rdata', 'ND4014 '],
  ['dns: buffer size too small', 'ND4014 '],
  ['concurrent queries exceeded maximum 1000', 'ND4015 '],
  [
    'tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-29T01:20:26Z is after 2021-01-01T00:00:00Z',
    'ND4016 ',
  ],
  [
    'tls: failed to verify certificate: x509: certificate is valid for other.test, not dns.test',
    'ND4016 dns.test',
  ],
  ['tls: failed to verify certificate: x509: certificate signed by unknown authority', 'ND4016 '],
  ['tls: first record does not look like a TLS handshake', 'ND4016 '],
  ['remote error: tls: handshake failure', 'ND4016 '],
  ['no healthy proxies', 'ND4017 '],
  [
    'read tcp 10.0.0.1:59040->192.0.2.53:53: read: connection reset by peer',
    'ND4018 192.0.2.53:53',
  ],
  ['EOF', 'ND4018 '],
  ['dial udp 192.0.2.53:53: socket: too many open files', 'ND7005 192.0.2.53:53'],
  ['something that nobody has seen', 'ND4019 '],
];

describe('a log of errors alone', () => {
  for (const [text, expected] of ofQueries)
    test(`${text.slice(0, 90)}: ${expected}`, () => {
      const lines = `[ERROR] plugin/errors: 2 www.example.com. A: ${text}\n`.repeat(300);
      const [first, ...rest] = ofLog(`.:53\nCoreDNS-1.14.7\n${lines}`).findings;
      assert.equal(`${first!.code} ${first!.subject}`, expected);
      assert.equal(first!.severity, first!.code === 'ND4019' ? 'warning' : 'critical');
      assert.deepEqual(rest, []);
      assert.match(
        first!.seen.join(' '),
        /300 lines in the log about one name \(www\.example\.com\.\)/,
      );
      assert.ok(first!.seen.join(' ').includes(text));
    });

  /** Lines of the server itself; the first three as CoreDNS 1.14.7 wrote them. */
  const ofServer: readonly (readonly [string, readonly string[]])[] = [
    [
      '[ERROR] plugin/kubernetes: Failed to watch: failed to list *v1.EndpointSlice: endpointslices.discovery.k8s.io is forbidden: User "system:serviceaccount:kube-system:coredns" cannot list resource "endpointslices" in API group "discovery.k8s.io" at the cluster scope\n[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API',
      ['ND5007  critical'],
    ],
    [
      '[ERROR] plugin/kubernetes: Failed to watch: failed to list *v1.Service: Unauthorized',
      ['ND5007  critical'],
    ],
    [
      '[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API',
      ['ND5001  critical'],
    ],
    [
      '[ERROR] plugin/kubernetes: pkg/mod/k8s.io/client-go@v0.29.3/tools/cache/reflector.go:229: Failed to watch *v1.Namespace: failed to list *v1.Namespace: Get "https://10.96.0.1:443/api/v1/namespaces?limit=500&resourceVersion=0": dial tcp 10.96.0.1:443: i/o timeout',
      ['ND5001  critical'],
    ],
    [
      'E1129 01:20:26.123456       1 reflector.go:204] "Failed to watch" err="failed to list *v1.Service: Get \\"https://10.96.0.1:443/api/v1/services\\": dial tcp 10.96.0.1:443: connect: connection refused" logger="UnhandledError" reflector="client-go" type="*v1.Service"',
      ['ND5001  critical'],
    ],
    ['Listen: listen tcp :53: bind: address already in use', ['ND5008  critical']],
    ['Listen: listen udp :53: bind: permission denied', ['ND5008  critical']],
    [
      "/etc/coredns/Corefile:2 - Error during parsing: Unknown directive 'bogus'",
      ['ND1001  critical'],
    ],
    [
      "[ERROR] plugin/reload: Corefile changed but reload failed: starting with listener file descriptors: /etc/coredns/Corefile:4 - Error during parsing: Unknown directive 'bogus'",
      ['ND1002  warning'],
    ],
    [
      '[ERROR] Recovered from panic in server: "dns://:53" runtime error: index out of range',
      ['ND5004  critical'],
    ],
    [
      'panic: runtime error: invalid memory address or nil pointer dereference',
      ['ND5004  critical'],
    ],
    ['[INFO] plugin/ready: Plugins not ready: "kubernetes"', ['ND5002  warning']],
    ['[INFO] plugin/ready: Still waiting on: "kubernetes"', ['ND5002  warning']],
    [
      '[WARNING] plugin/health: Local health request to "http://:8080/health" took more than 1s: 1.2s',
      ['ND7006  warning'],
    ],
    [
      '[FATAL] plugin/loop: Loop (127.0.0.1:40000 -> :53) detected for zone ".", see https://coredns.io/plugins/loop#troubleshooting. Query: "HINFO 1.2."',
      ['ND4004  critical'],
    ],
    [
      '[ERROR] Error adding iptables rule {raw PREROUTING [-p tcp]} - error: exit status 4',
      ['ND5009  warning'],
    ],
    [
      '[INFO] SIGTERM: Shutting down servers then terminating\n[INFO] plugin/health: Going into lameduck mode for 5s',
      ['ND5010  info'],
    ],
    ['[INFO] SHUTDOWN: Entering lameduck mode', ['ND5010  info']],
    [
      "[ERROR] plugin/errors: 300 errors like '^read udp .* i/o timeout$' occurred in last 30s",
      ['ND4008  critical'],
    ],
  ];
  for (const [line, expected] of ofServer)
    test(`${line.slice(0, 90)}: ${expected.join(', ')}`, () => {
      assert.deepEqual(shown(ofLog(`.:53\nCoreDNS-1.14.7\n${line}\n`)), expected);
    });

  test('each upstream and cause is a finding of its own, with when, how often and which names', () => {
    const lines = Array.from({ length: 300 }, (_, i) => {
      const time = new Date(Date.UTC(2026, 10, 29, 1, 0, i)).toISOString();
      const text = i % 3 === 0 ? 'connection refused' : 'i/o timeout';
      return `${time} [ERROR] plugin/errors: 2 n${i % 7}.test. A: read udp 10.0.0.1:9->192.0.2.${i % 2}:53: ${text}\n`;
    });
    const found = ofLog(lines.join(''));
    assert.deepEqual(shown(found).toSorted(), [
      'ND4008 192.0.2.0:53 critical',
      'ND4008 192.0.2.1:53 critical',
      'ND4011 192.0.2.0:53 critical',
      'ND4011 192.0.2.1:53 critical',
    ]);
    assert.match(
      found.findings[0]!.seen[0]!,
      /^100 lines in the log about 7 names \(.*\), from 2026-11-29 01:00:0\d to 01:04:5\d UTC\.$/,
    );
    assert.match(found.findings[0]!.prove, /ndots query n\d\.test\. @192\.0\.2\.\d:53/);
  });

  test('of very many upstreams the first five are findings, and the others are named there', () => {
    const lines = Array.from(
      { length: 2000 },
      (_, i) =>
        `[ERROR] plugin/errors: 2 a.test. A: read udp 10.0.0.1:9->10.1.${i >> 8}.${i % 256}:53: i/o timeout\n`,
    );
    const { findings } = ofLog(lines.join(''));
    assert.equal(findings.length, 5);
    assert.match(
      findings[0]!.seen.at(-1)!,
      /^495 more lines report the same for 495 other upstreams: /,
    );
  });

  test('a few errors in hours are a warning', () => {
    const lines = [0, 1, 2, 3].map(
      (hour) =>
        `2026-11-29T0${hour}:00:00Z [ERROR] plugin/errors: 2 a.test. A: read udp 10.0.0.1:9->192.0.2.1:53: i/o timeout\n`,
    );
    assert.deepEqual(shown(ofLog(lines.join(''))), ['ND4008 192.0.2.1:53 warning']);
  });

  test('a log without errors has no finding', () => {
    const text =
      '.:53\n[INFO] plugin/reload: Running configuration SHA512 = 6ff8\nCoreDNS-1.14.7\n';
    assert.deepEqual(ofLog(text).findings, []);
  });
});

describe('what collectors put around a line is taken off', () => {
  const bare =
    '[ERROR] plugin/errors: 2 www.example.com. A: read udp 10.0.0.1:9->192.0.2.1:53: i/o timeout';
  const stamp = '2026-11-29T01:02:03.456789012Z';
  const json = (fields: object): string => JSON.stringify(fields);
  const forms: readonly (readonly [string, string, boolean, string])[] = [
    ['kubectl logs', bare, false, ''],
    ['kubectl logs --timestamps', `${stamp} ${bare}`, true, ''],
    ['kubectl logs --prefix', `[pod/coredns-7d4-x2/coredns] ${bare}`, false, 'coredns-7d4-x2'],
    [
      'kubectl logs --prefix --timestamps',
      `[pod/coredns-7d4-x2/coredns] ${stamp} ${bare}`,
      true,
      'coredns-7d4-x2',
    ],
    ['the file of a container runtime', `${stamp} stderr F ${bare}`, true, ''],
    ['the file of docker', json({ log: `${bare}\n`, stream: 'stderr', time: stamp }), true, ''],
    ['stern', `coredns-7d4-x2 coredns ${bare}`, false, 'coredns-7d4-x2'],
    ['stern --timestamps', `coredns-7d4-x2 coredns ${stamp} ${bare}`, true, 'coredns-7d4-x2'],
    [
      'stern -o json',
      json({ message: bare, podName: 'coredns-7d4-x2', containerName: 'coredns' }),
      false,
      'coredns-7d4-x2',
    ],
    ['logcli', `${stamp} {app="coredns", pod="coredns-7d4-x2"} ${bare}`, true, 'coredns-7d4-x2'],
    [
      'logcli -o jsonl',
      json({ labels: { pod: 'coredns-7d4-x2' }, line: bare, timestamp: stamp }),
      true,
      'coredns-7d4-x2',
    ],
    [
      'Fluent Bit',
      json({ '@timestamp': stamp, kubernetes: { pod_name: 'coredns-7d4-x2' }, log: bare }),
      true,
      'coredns-7d4-x2',
    ],
    ['journalctl', `Nov 29 01:02:03 node1 coredns[123]: ${bare}`, false, ''],
    ['colours of a terminal', `\u001b[31m${bare}`, false, ''],
    [
      'a server that logs JSON',
      json({
        time: stamp,
        level: 'error',
        plugin: 'errors',
        msg: bare.slice('[ERROR] plugin/errors: '.length),
      }),
      true,
      '',
    ],
  ];
  for (const [form, line, timed, pod] of forms)
    test(form, () => {
      const found = ofLog(`${line}\n`.repeat(30));
      assert.deepEqual(shown(found), ['ND4008 192.0.2.1:53 critical']);
      const [seen = ''] = found.findings[0]!.seen;
      assert.equal(seen.includes('at 2026-11-29 01:02:03 UTC'), timed);
      assert.deepEqual(found.findings[0]!.affected, pod === '' ? [] : [pod]);
    });
});
