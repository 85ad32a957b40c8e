import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeLog, pluginLog } from './log.ts';

test('a line shows the hidden characters of texts that it quotes', () => {
  const lines: string[] = [];
  const log = pluginLog(
    makeLog((line) => lines.push(line)),
    'forward',
  );
  log.error('refused: \u001b[2J\u202eno');
  assert.deepEqual(lines, ['[ERROR] plugin/forward: refused: \\u001b[2J\\u202eno']);
});

test('a line of the level DEBUG is made only while such lines are logged', () => {
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
