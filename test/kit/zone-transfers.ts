/** Shared code for tests of zone transfers between ndots and other name servers. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { askStream } from '../../src/server/transport/one-exchange.ts';
import { TYPE } from '../../src/server/wire/iana.ts';
import { readMessage, writeMessage } from '../../src/server/wire/message.ts';
import { printRecord } from '../../src/server/wire/print.ts';
import { printed, start } from './child.ts';
import { UdpClient } from './zone-servers.ts';

export const has = (program: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const program = join(import.meta.dirname, '../../bin/ndots');

export function scratch(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-transfers-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * Starts ndots with this Corefile until the test ends.
 * @returns a function that returns the output so far
 */
export async function ndots(
  t: TestContext,
  directory: string,
  corefile: string,
): Promise<() => string> {
  const file = join(directory, 'Corefile');
  writeFileSync(file, corefile);
  const child = start('ndots', [program, 'serve', '-conf', file]);
  t.after(async () => {
    child.signal('SIGKILL');
    await child.exitCode;
  });
  await printed(child, /ndots-\d/, 30_000);
  return () => child.output();
}

export const question = (name: string, type: number, edns = true): Uint8Array =>
  writeMessage({
    id: 77,
    flags: 0,
    rcode: 0,
    question: [{ name, type, class: 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: edns ? { udpSize: 4096, version: 0, dnssecOk: false, options: [] } : null,
  });

/** The serial in a server's reply, or null if there is none. */
export async function serialAt(port: number): Promise<number | null> {
  const client = new UdpClient(port);
  try {
    const { answer } = readMessage(await client.ask(question('example.org.', TYPE.SOA)));
    return (answer[0]?.data as { serial: number } | undefined)?.serial ?? null;
  } catch {
    return null;
  } finally {
    client.close();
  }
}

/**
 * Waits until the zone on a port has this serial.
 * @throws after half a minute, with the difference and `output`
 */
export async function until(
  what: string,
  port: number,
  serial: number,
  output = (): string => '',
): Promise<void> {
  const end = Date.now() + 30_000;
  let found: number | null = null;
  while (Date.now() < end) {
    found = await serialAt(port);
    if (found === serial) return;
    await pause(100);
  }
  assert.fail(`${what} answers with serial ${found}, not ${serial}\n${output()}`);
}

/** Its log lines may appear slightly later than its replies. */
export async function says(output: () => string, what: RegExp): Promise<void> {
  for (let tries = 0; tries < 100 && !what.test(output()); tries++) await pause(50);
  assert.match(output(), what);
}

/** All records that a server has in a zone, sorted. Empty if it does not transfer the zone. */
export async function transferred(port: number, zone = 'example.org.'): Promise<string[]> {
  const lines: string[] = [];
  let soas = 0;
  const terms = { idleMs: 5000, totalMs: 20_000, signal: new AbortController().signal };
  await askStream(
    [question(zone, TYPE.AXFR, false)],
    { host: '127.0.0.1', port },
    terms,
    (bytes) => {
      const { rcode, answer } = readMessage(bytes);
      if (rcode !== 0 || answer.length === 0) return true;
      for (const record of answer) {
        if (record.type === TYPE.SOA && ++soas === 2) return true;
        lines.push(printRecord(record).replace(/\s+/g, ' '));
      }
      return false;
    },
  );
  return lines.toSorted();
}
