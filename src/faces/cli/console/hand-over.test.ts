/** Exports a selection from a real capture, then reads the packets with the real tshark. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { AddressOwner } from '../../../tools/pods/address-owners.ts';
import { parseFilterLine } from '../../../tools/capture/filter-line.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import { fileSource, readFiles } from '../../../../test/kit/console-browser.ts';
import { findingsReport } from './findings-report.ts';
import { HandOver } from './hand-over.ts';

const capture = resolve('examples/captures/tcp-blocked.pcapng');
const owner: AddressOwner = {
  ...{ kind: 'pod', namespace: 'shop', name: 'cart-1', workload: 'deploy/cart', node: 'node1' },
};
const directory = mkdtempSync(join(tmpdir(), 'ndots-hand-over-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const source = fileSource(capture);

describe('what the console hands over', () => {
  const model = new LiveModel({ owners: new Map([['10.244.1.4', owner]]) });
  before(() => readFiles(source, model));

  async function packetsOf(line: string): Promise<string> {
    const pieces: Uint8Array[] = [];
    await new HandOver(source, model, 'full').packets(
      parseFilterLine(line),
      new AbortController().signal,
      async (bytes) => void pieces.push(bytes),
    );
    const file = join(directory, 'selected.pcapng');
    writeFileSync(file, Buffer.concat(pieces));
    return file;
  }

  const tshark = (file: string, ...words: readonly string[]): readonly string[] =>
    spawnSync('tshark', ['-r', file, ...words], { encoding: 'utf8' })
      .stdout.trim()
      .split('\n');

  test('the packets of the selected lookups, as recorded, with pod and finding as comments', async () => {
    const fields = ['-T', 'fields', '-e', 'frame.time_epoch', '-e', 'dns.id', '-e', 'ip.id'];
    const file = await packetsOf('protocol=tcp');
    const packets = tshark(file, ...fields);
    // Three lookups, each with two queries over UDP and the same two in a single TCP segment.
    assert.equal(packets.length, 3 * 6);
    const all = new Set(tshark(capture, ...fields));
    assert.ok(packets.every((packet) => all.has(packet)));
    const comments = tshark(file, '-T', 'fields', '-e', 'frame.comment');
    assert.ok(
      comments.every((comment) => comment.startsWith('pod shop/cart-1')),
      comments[0] ?? 'no comment',
    );
    assert.ok(comments.some((comment) => /ND\d{4} /.test(comment)));
  });

  test('nothing selected, live traffic, hidden clients: says why there are no packets', async () => {
    await assert.rejects(packetsOf('name=nothing.example'), /no packet in the capture is selected/);
    const live = new HandOver({ ...source, files: [], device: 'any' }, model, 'full');
    const offered = await live.view(parseFilterLine('not name=*.local'));
    assert.match(offered.noPackets, /does not store packets from live traffic/);
    assert.equal(offered.command, "ndots capture -i any -o flow --not 'name=*.local'");
    const hidden = await new HandOver(source, model, 'no-clients').view([]);
    assert.match(hidden.noPackets, /--privacy no-clients hides/);
    const log = join(directory, 'query.log');
    writeFileSync(
      log,
      '[INFO] 10.244.1.4:1 - 1 "A IN a.example. udp 30 false 512" NOERROR 0 0.1s\n',
    );
    const ofLog = await new HandOver({ ...source, files: [log] }, model, 'full').view([]);
    assert.match(ofLog.noPackets, /log contains no packets/);
  });

  test('the findings as a single page without scripts or external resources', () => {
    const findings = model.view({ view: 'findings' });
    const row = { ...findings.rows[0]!, subject: '<img src=x onerror=alert(1)>' };
    const page = findingsReport(
      model.view({ view: 'now' }),
      { ...findings, rows: [row, ...findings.rows.slice(1)] },
      '<b>capture</b>',
    );
    assert.match(page, /DNS over TCP is blocked/);
    assert.doesNotMatch(page, /<script|<img|<b>|https?:\/\//);
  });
});
