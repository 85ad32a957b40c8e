import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { test } from 'node:test';
import { answered, printed } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

/** The words that alerts and `consolidate` patterns written for CoreDNS match. */
test("failures of the network are reported in Go's words, and patterns written for CoreDNS count them", async (t) => {
  const [gone] = await freePorts(1);
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const server = await serveProcess(`
    errors {
      consolidate 1s "dial tcp .*: connect: connection refused$" warning show_first
      consolidate 1s ".* i/o timeout$" info
    }
    forward udp.example 127.0.0.1:${gone}
    forward tcp.example 127.0.0.1:${gone} {
      force_tcp
    }
    forward silent.example 127.0.0.1:${silent.address().port}
  `);
  t.after(() => server.stop());
  for (const name of ['udp.example', 'tcp.example', 'tcp.example', 'silent.example'])
    await answered(server.port, name, 20_000, () => true);
  const told = [
    String.raw`\[ERROR\] plugin/errors: 2 udp\.example\. A: read udp 127\.0\.0\.1:\d+->127\.0\.0\.1:${gone}: read: connection refused`,
    String.raw`\[WARNING\] plugin/errors: 2 tcp\.example\. A: dial tcp 127\.0\.0\.1:${gone}: connect: connection refused`,
    String.raw`\[WARNING\] plugin/errors: \d+ errors like 'dial tcp \.\*: connect: connection refused\$' occurred in last 1s`,
    String.raw`\[INFO\] plugin/errors: \d+ errors like '\.\* i/o timeout\$' occurred in last 1s`,
  ];
  for (const line of told) await printed(server.child, new RegExp(`^${line}$`, 'm'), 10_000);
});
