import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemClock, type Clock } from '../base/clock.ts';
import { makeLog, pluginLog } from '../base/log.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { SharedRegistry } from '../metrics/shared-registry.ts';
import { ZonePublisher } from './zone-publisher.ts';
import { ZoneReloader, type ZoneSource } from './zone-reloader.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-zone-reloader-'));
after(() => rmSync(directory, { recursive: true }));

const head = '$TTL 60\n@ SOA ns h 1 100 10 1000 5\n@ NS ns\n';

/** A zone file that is or is not large enough to need its own thread. */
function source(zone: string, text: string): ZoneSource {
  const path = join(directory, zone);
  writeFileSync(path, head + text);
  return { zone, path, byTime: false };
}

function make(clock: Clock = systemClock): {
  readonly reloader: ZoneReloader;
  readonly publisher: ZonePublisher;
  readonly lines: readonly string[];
} {
  const lines: string[] = [];
  const publisher = new ZonePublisher(
    (() => ({ publish: () => undefined, close: () => undefined })) as never,
    clock,
  );
  const log = pluginLog(
    makeLog((line) => lines.push(line)),
    'file',
  );
  const parts = {
    publisher,
    clock,
    log,
    metrics: new SharedRegistry(() => undefined),
  };
  return { reloader: new ZoneReloader(parts), publisher, lines };
}

const large = source('large.', '$GENERATE 0-99999 h$ A 192.0.2.1\n');
const small = source('small.', 'www A 192.0.2.1\n');

test('a zone that takes long to read does not delay any other one', async () => {
  const { reloader, publisher } = make();
  const all = reloader.refresh([large, small]);
  while (publisher.packed('small.') === null) await new Promise((go) => setTimeout(go, 5));
  assert.equal(publisher.packed('large.'), null);
  // It is not read twice at the same time either, however often that is requested.
  await reloader.refresh([large, small]);
  assert.equal(publisher.packed('large.'), null);
  await all;
  assert.equal(publisher.packed('large.')?.records, 100_002);
});

test('a zone that is removed while being read does not come back', async () => {
  const { reloader, publisher } = make();
  const all = reloader.refresh([large]);
  await new Promise((go) => setTimeout(go, 20));
  reloader.forget('large.');
  await all;
  assert.equal(publisher.has('large.'), false);
});

test('a file that takes long to read reports its progress', async () => {
  const clock = new VirtualClock();
  const { reloader, publisher, lines } = make(clock);
  const all = reloader.load(large);
  // Time advances as soon as the thread has read part of the file.
  let isDone = false;
  void all.then(() => (isDone = true));
  while (!isDone) {
    await new Promise((go) => setTimeout(go, 5));
    await clock.advance(500);
  }
  const [first] = lines;
  assert.match(
    first!,
    /^\[INFO\] plugin\/file: Reading zone "large\." in "\S+\/large\.": \d+ records so far, line \d+ \(5s\)$/,
  );
  assert.equal(publisher.packed('large.')?.records, 100_002);
  const told = lines.filter((line) => line.includes('Reading zone')).length;
  await clock.advance(60_000);
  assert.equal(lines.filter((line) => line.includes('Reading zone')).length, told);
});
