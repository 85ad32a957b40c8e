import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { ConntrackTable, kernelOf } from './conntrack.ts';

const flow = 'udp 10.244.1.4:40000 10.96.0.10:53';

describe('the connection tracking table', () => {
  test('a DNS exchange stays for 30 s, and on kernels before 5.0 for 180 s', () => {
    for (const [version, seconds] of [
      ['4.19', 180],
      ['5.0', 30],
      ['6.18', 30],
    ] as const) {
      const table = new ConntrackTable(kernelOf(version));
      assert.equal(table.packet(flow, 'original', 0), 'new');
      assert.equal(table.packet(flow, 'reply', 1), 'known');
      assert.equal(table.secondsLeft(flow, 1), seconds, version);
    }
  });

  test('a client that reuses its port has a stream of 120 s after two seconds', () => {
    const table = new ConntrackTable(kernelOf('6.18'));
    for (const atMs of [0, 1000, 2500]) {
      table.packet(flow, 'original', atMs);
      table.packet(flow, 'reply', atMs + 1);
    }
    assert.equal(table.secondsLeft(flow, 2501), 120);
  });

  test('a full table of exchanges makes room; one of streams does not', () => {
    const settings = { ...kernelOf('6.18'), max: 100, buckets: 25 };
    const dropped = (table: ConntrackTable): number => {
      let count = 0;
      for (let n = 0; n < 150; n++)
        if (table.packet(`${flow}#${n}`, 'original', n) === 'dropped') count++;
        else table.packet(`${flow}#${n}`, 'reply', n);
      return count;
    };
    const exchanges = new ConntrackTable(settings);
    assert.deepEqual([dropped(exchanges), exchanges.size], [0, 100]);
    const streams = new ConntrackTable({ ...settings, streamAfterSeconds: 0 });
    assert.deepEqual([dropped(streams), streams.size], [50, 100]);
  });
});

const cannot =
  spawnSync('unshare', [
    '-n',
    'sh',
    '-c',
    'iptables -t raw -A OUTPUT -m conntrack --ctstate NEW && conntrack -L',
  ]).status === 0
    ? false
    : 'needs root, network namespaces, iptables and conntrack';

test("this machine's kernel does the same", { skip: cannot }, () => {
  // Makes one exchange, then another on the same port two seconds later. Prints how much time the entry has left after
  // each.
  const script = `
    ip link set lo up
    iptables -A INPUT -m conntrack --ctstate NEW
    cat > /dev/null
    ${process.execPath} -e '
      const { createSocket } = require("node:dgram");
      const { execFileSync } = require("node:child_process");
      const server = createSocket("udp4"), client = createSocket("udp4");
      server.on("message", (m, from) => server.send(m, from.port, from.address));
      const left = () => Number(/udp +17 (\\d+) .*dport=5353/.exec(execFileSync("conntrack", ["-L", "-p", "udp"], { stdio: ["ignore", "pipe", "ignore"] }).toString())[1]);
      const ask = () => new Promise((done) => { client.once("message", done); client.send("x", 5353, "127.0.0.1"); });
      server.bind(5353, "127.0.0.1", () => client.bind(40000, "127.0.0.1", async () => {
        await ask(); const short = left();
        await new Promise((done) => setTimeout(done, 2300));
        await ask(); await ask(); const long = left();
        console.log(JSON.stringify([short, long])); process.exit(0);
      }));'`;
  const { stdout, stderr } = spawnSync('unshare', ['-n', 'sh', '-c', script], {
    encoding: 'utf8',
    input: '',
  });
  const [short, long] = JSON.parse(stdout || `"${stderr}"`) as [number, number];
  const table = new ConntrackTable(
    kernelOf(spawnSync('uname', ['-r'], { encoding: 'utf8' }).stdout),
  );
  table.packet(flow, 'original', 0);
  table.packet(flow, 'reply', 1);
  const modelShort = table.secondsLeft(flow, 1)!;
  table.packet(flow, 'original', 2300);
  table.packet(flow, 'reply', 2301);
  const modelLong = table.secondsLeft(flow, 2301)!;
  // A second may pass before conntrack runs.
  assert.ok(modelShort - short <= 3 && short <= modelShort, `${short} of ${modelShort}`);
  assert.ok(modelLong - long <= 3 && long <= modelLong, `${long} of ${modelLong}`);
});
