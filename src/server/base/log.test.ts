import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { jsonLines, makeLog, pluginLog } from './log.ts';

test('hidden characters in quoted text are made visible', () => {
  const lines: string[] = [];
  const log = pluginLog(
    makeLog((line) => lines.push(line)),
    'forward',
  );
  log.error('refused: \u001b[2J\u202eno');
  assert.deepEqual(lines, ['[ERROR] plugin/forward: refused: \\u001b[2J\\u202eno']);
});

test('DEBUG lines are built only while they are logged', () => {
  const lines: string[] = [];
  let debugging = false;
  let made = 0;
  const log = pluginLog(
    makeLog(
      (line) => lines.push(line),
      () => debugging,
    ),
    'local',
  );
  const line = (): string => `line ${++made}`;
  log.debug(line);
  log.debug('text');
  assert.equal(made, 0);
  debugging = true;
  log.debug(line);
  log.debug('text');
  assert.deepEqual(lines, ['[DEBUG] plugin/local: line 1', '[DEBUG] plugin/local: text']);
});

const json = jsonLines({ wall: () => Date.UTC(2026, 10, 29, 2, 3, 4, 5) });

test('a structured line is one JSON object with time, level, msg and plugin', () => {
  const lines: string[] = [];
  const log = makeLog(
    (line) => lines.push(line),
    () => true,
    json,
  );
  const own = pluginLog(log, 'forward');
  own.debug('a');
  own.warning('b: \u001b[2J\u202e');
  log.error('c');
  log.raw('[FATAL] plugin/loop: two\nlines');
  log.raw('.:53');
  log.raw('[INFO] text', { rcode: null, size: 7 });
  const time = '2026-11-29T02:03:04.005Z';
  assert.deepEqual(
    lines.map((line) => JSON.parse(line) as unknown),
    [
      { time, level: 'DEBUG', msg: 'a', plugin: 'forward' },
      { time, level: 'WARN', msg: 'b: \u001b[2J\u202e', plugin: 'forward' },
      { time, level: 'ERROR', msg: 'c' },
      { time, level: 'FATAL', msg: 'two\nlines', plugin: 'loop' },
      { time, level: 'INFO', msg: '.:53' },
      { time, level: 'INFO', msg: 'text', rcode: null, size: 7 },
    ],
  );
  assert.ok(own.structured && log.structured);
});

test('any text becomes one line of JSON without hidden characters, and parses back unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const line = json(`[ERROR] plugin/errors: ${text}`);
      assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      const { msg, level, plugin } = JSON.parse(line) as Record<string, unknown>;
      assert.deepEqual({ msg, level, plugin }, { msg: text, level: 'ERROR', plugin: 'errors' });
    }),
  );
});
