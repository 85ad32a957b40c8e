/** The cost of running 100 checks on three replicas every 10 s. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { start } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';

const CHECKS = 100;
const REPLICAS = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const;
const MEASURED_S = 60;

/** Answers every question with a single A record. */
async function replica(address: string, port: number): Promise<{ close(): void; asked(): number }> {
  const socket = createSocket('udp4');
  let asked = 0;
  socket.on('message', (query, from) => {
    asked++;
    let end = 12;
    while (query[end] !== 0) end += 1 + query[end]!;
    const head = Buffer.from([query[0]!, query[1]!, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 96, 0, 1]);
    socket.send(
      Buffer.concat([head, query.subarray(12, end + 5), answer]),
      from.port,
      from.address,
    );
  });
  await new Promise<void>((done) => socket.bind(port, address, done));
  return { close: () => socket.close(), asked: () => asked };
}

test('100 targets at 3 replicas each 10 s take 5 % of a CPU and 90 MiB at most', async (t) => {
  const [dnsPort, port] = await freePorts(2);
  const replicas = await Promise.all(REPLICAS.map((address) => replica(address, dnsPort)));
  const directory = mkdtempSync(join(tmpdir(), 'ndots-check-'));
  const file = join(directory, 'check.yaml');
  const checks = Array.from(
    { length: CHECKS },
    (_, index) =>
      `  - { check: replica-answers, title: c${index}, name: n${index}.default.svc.cluster.local }`,
  );
  const addresses = REPLICAS.map((address) => `'${address}:${dnsPort}'`).join(', ');
  writeFileSync(
    file,
    `vip: 127.0.0.1:${dnsPort}\nreplicas: [${addresses}]\nevery: 10s\ntimeout: 5s\nchecks:\n${checks.join('\n')}\n`,
  );
  const listen = `127.0.0.1:${port}`;
  const child = start('ndots', [
    resolve('bin/ndots'),
    ...['check', 'serve', '-f', file, '--listen', listen],
  ]);
  t.after(async () => {
    await child.stop();
    for (const each of replicas) each.close();
    rmSync(directory, { recursive: true });
  });
  const scraped = async (): Promise<string> =>
    fetch(`http://${listen}/metrics`)
      .then((response) => response.text())
      .catch(() => '');
  for (const end = Date.now() + 60_000; ;) {
    const up = (await scraped()).match(/^ndots_check_up\{.*\} 1$/gm) ?? [];
    if (up.length === CHECKS * REPLICAS.length) break;
    assert.ok(Date.now() < end, `${up.length} targets are up\n${child.output()}`);
    await pause(500);
  }
  // By then, startup memory has been released.
  await pause(20_000);
  const before = { cpu: child.cpuSeconds(), asked: replicas.map((each) => each.asked()) };
  let peak = 0;
  for (let second = 0; second < MEASURED_S; second++) {
    // Scrapes in the same way as Prometheus.
    if (second % 15 === 0) await scraped();
    await pause(1000);
    peak = Math.max(peak, child.residentMiB());
  }
  const share = (child.cpuSeconds() - before.cpu) / MEASURED_S;
  for (const [index, each] of replicas.entries())
    assert.ok(each.asked() - before.asked[index]! >= (CHECKS * MEASURED_S) / 11, 'it worked');
  t.diagnostic(`${(share * 100).toFixed(2)} % of a CPU, ${peak.toFixed(1)} MiB at most`);
  assert.ok(share <= 0.05, `${(share * 100).toFixed(2)} % of a CPU`);
  assert.ok(peak <= 90, `${peak.toFixed(1)} MiB`);
});
