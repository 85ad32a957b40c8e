import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../../server/base/virtual-clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import { FRAME_MS, STREAMS_MAX, ViewStreams } from './view-streams.ts';

/** A simulated browser that records what it receives and may stop reading. */
class Browser extends EventEmitter {
  received: string = '';
  writableNeedDrain: boolean = false;
  isEnded: boolean = false;
  writeHead(): this {
    return this;
  }
  write(text: string): boolean {
    this.received += text;
    return true;
  }
  end(text = ''): void {
    this.received += text;
    this.isEnded = true;
  }
  get response(): ServerResponse {
    return this as unknown as ServerResponse;
  }
  frames(): number {
    return this.received.split('event: view\n').length - 1;
  }
}

function streamsOf(view: (key: string) => string): { clock: VirtualClock; streams: ViewStreams } {
  const clock = new VirtualClock();
  return { clock, streams: new ViewStreams({ clock, view }) };
}

describe('streams of views', () => {
  test('browsers with the same view share one computation', async () => {
    let computed = 0;
    const { clock, streams } = streamsOf(() => String(computed++));
    const browsers = Array.from({ length: 10 }, () => new Browser());
    for (const browser of browsers) streams.add('now?', browser.response);
    computed = 0;
    await clock.advance(FRAME_MS);
    assert.equal(computed, 1);
    for (const browser of browsers) assert.equal(browser.frames(), 2);
    streams.close();
  });

  test('nothing is computed without a viewer', async () => {
    let computed = 0;
    const { clock, streams } = streamsOf(() => String(computed++));
    const browser = new Browser();
    streams.add('now?', browser.response);
    browser.emit('close');
    computed = 0;
    await clock.advance(10 * FRAME_MS);
    assert.equal(computed, 0);
    assert.equal(streams.open, 0);
  });

  test('a slow browser misses frames, and receives their number', async () => {
    const { clock, streams } = streamsOf(() => '{}');
    const browser = new Browser();
    streams.add('now?', browser.response);
    browser.writableNeedDrain = true;
    await clock.advance(3 * FRAME_MS);
    assert.equal(browser.frames(), 1);
    browser.writableNeedDrain = false;
    await clock.advance(FRAME_MS);
    assert.match(browser.received, /event: missed\ndata: 3\n\nevent: view\n/);
    streams.close();
  });

  test('the oldest stream ends with a message when there are too many', () => {
    const { streams } = streamsOf(() => '{}');
    const browsers = Array.from({ length: STREAMS_MAX + 1 }, () => new Browser());
    for (const browser of browsers) streams.add('now?', browser.response);
    assert.deepEqual(
      browsers.map(({ isEnded }) => isEnded),
      browsers.map((_, index) => index === 0),
    );
    assert.match(browsers[0]!.received, /event: replaced/);
    streams.close();
  });

  test('a view that becomes invalid sends the reason, and the stream continues', async () => {
    let isRefused = false;
    const { clock, streams } = streamsOf(() => {
      if (isRefused) throw new Problem({ code: 'usage', text: 'no such view', hint: 'look' });
      return '{}';
    });
    const browser = new Browser();
    streams.add('now?', browser.response);
    isRefused = true;
    await clock.advance(FRAME_MS);
    assert.match(browser.received, /event: refused\ndata: {"text":"no such view","hint":"look"}/);
    isRefused = false;
    await clock.advance(FRAME_MS);
    assert.equal(browser.frames(), 2);
    streams.close();
  });
});
