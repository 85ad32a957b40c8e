/** Tests full-screen output by reading it back from the xterm emulator. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../../server/base/virtual-clock.ts';
import { EmulatedTerminal } from '../../../../test/kit/emulated-terminal.ts';
import type { CellGrid } from './cell-grid.ts';
import { colourDepth, SELECTED, STYLE, type ColourDepth } from './cell-style.ts';
import { FullScreen } from './full-screen.ts';

describe('a full screen', () => {
  test('shows what was drawn, without remains of the previous frame', async () => {
    const { screen, terminal, draws } = shown((grid) => grid.text(2, 1, 'one two three', 0));
    assert.deepEqual(await terminal.screen(), ['', '  one two three', '', '']);
    draws((grid) => grid.text(2, 2, 'four', 0));
    screen.draw();
    assert.deepEqual(await terminal.screen(), ['', '', '  four', '']);
  });

  test('writes only the cells that changed, within one synchronized update', () => {
    const { screen, terminal, draws } = shown((grid) => grid.text(0, 0, 'queries 1234', 0));
    terminal.takeWritten();
    draws((grid) => grid.text(0, 0, 'queries 1235', 0));
    screen.draw();
    assert.equal(
      terminal.takeWritten(),
      '\u001b[?2026h\u001b[1;12H\u001b[0m5\u001b[0m\u001b[?2026l',
    );
  });

  test('writes nothing if nothing changed', () => {
    const { screen, terminal } = shown((grid) => grid.text(0, 0, 'queries 1234', 0));
    terminal.takeWritten();
    screen.draw();
    assert.equal(terminal.takeWritten(), '');
  });

  test('truncates long text with an ellipsis', async () => {
    const { terminal } = shown((grid) => {
      grid.text(0, 0, 'abcdefghij', 0, 5);
      grid.text(18, 1, 'over the edge', 0);
    });
    assert.deepEqual((await terminal.screen()).slice(0, 2), ['abcd…', '                  o…']);
  });

  test('escapes control characters, and draws every character in one cell', async () => {
    const { terminal } = shown((grid) => {
      assert.equal(grid.text(0, 0, '\u001b[2Jx', 0), 10);
      assert.equal(grid.text(0, 1, '水e\u0301|', 0), 4);
      grid.text(0, 2, 'a\u202eb', 0);
    });
    assert.deepEqual((await terminal.screen()).slice(0, 3), [
      '\\u001b[2Jx',
      '\ufffde\ufffd|',
      'a\\u202eb',
    ]);
  });

  test('redraws everything after a size change', async () => {
    const { terminal } = shown((grid) => grid.text(0, grid.rows - 1, `${grid.columns}`, 0));
    terminal.resize(30, 6);
    assert.deepEqual(await terminal.screen(), ['', '', '', '', '', '30']);
  });

  test('waits for a slow terminal, and then draws only the latest frame', async () => {
    const { screen, terminal, draws } = shown((grid) => grid.text(0, 0, 'first', 0));
    terminal.takes = false;
    draws((grid) => grid.text(0, 0, 'second', 0));
    screen.draw();
    terminal.takeWritten();
    draws((grid) => grid.text(0, 0, 'third', 0));
    screen.draw();
    draws((grid) => grid.text(0, 0, 'fourth', 0));
    screen.draw();
    assert.equal(terminal.takeWritten(), '');
    terminal.drain();
    assert.match(await terminal.text(), /^fourth/);
  });

  test('restores the terminal', async () => {
    const { screen, terminal } = shown((grid) => grid.text(0, 0, 'x', 0));
    assert.ok(terminal.isRaw && (await terminal.isAlternate()));
    screen.leave();
    assert.ok(!terminal.isRaw && !(await terminal.isAlternate()));
    assert.ok(terminal.takeWritten().includes('\u001b[?25h'));
    screen.leave();
    assert.equal(terminal.takeWritten(), '');
  });

  test('restores it when the process ends without calling leave', async () => {
    const { terminal } = shown((grid) => grid.text(0, 0, 'x', 0));
    terminal.events.ending();
    assert.ok(!terminal.isRaw && !(await terminal.isAlternate()));
  });

  test('leaves while the process is stopped, and redraws everything when it continues', async () => {
    const { screen, terminal } = shown((grid) => grid.text(0, 0, 'here', 0));
    screen.suspend();
    assert.equal(terminal.suspensions, 1);
    assert.ok(terminal.isRaw && (await terminal.isAlternate()));
    assert.match(await terminal.text(), /^here/);
  });

  test('copies through the terminal (OSC 52)', () => {
    const { screen, terminal } = shown(() => undefined);
    terminal.takeWritten();
    screen.copy('ndots trace x');
    assert.equal(terminal.takeWritten(), '\u001b]52;c;bmRvdHMgdHJhY2UgeA==\u0007');
  });
});

describe('styles', () => {
  test('the palette has 256 colours, 16, or none', async () => {
    for (const [depth, foreground] of [
      [256, 203],
      [16, 1],
      ['none', -1],
    ] as const) {
      const { terminal } = shown((grid) => grid.text(0, 0, 'lost', STYLE.bad), depth);
      assert.deepEqual(await terminal.cell(0, 0), {
        characters: 'l',
        foreground,
        inverse: false,
        bold: true,
      });
    }
  });

  test('the selected row is in reverse video, regardless of colours', async () => {
    for (const depth of [256, 16, 'none'] as const) {
      const { terminal } = shown((grid) => grid.text(0, 0, 'row', STYLE.dim | SELECTED), depth);
      assert.equal((await terminal.cell(0, 0)).inverse, true);
    }
  });

  test('the environment determines the number of colours', () => {
    assert.equal(colourDepth({ TERM: 'xterm-256color' }), 256);
    assert.equal(colourDepth({ TERM: 'xterm', COLORTERM: 'truecolor' }), 256);
    assert.equal(colourDepth({ TERM: 'linux' }), 16);
    assert.equal(colourDepth({ TERM: 'xterm-256color', NO_COLOR: '1' }), 'none');
    assert.equal(colourDepth({ TERM: 'dumb' }), 'none');
  });
});

function shown(
  first: (grid: CellGrid) => void,
  depth: ColourDepth = 256,
): {
  screen: FullScreen;
  terminal: EmulatedTerminal;
  draws: (next: (grid: CellGrid) => void) => void;
} {
  let draw = first;
  const terminal = new EmulatedTerminal(20, 4);
  const screen = new FullScreen(terminal, depth, {
    draw: (grid) => draw(grid),
    key: () => undefined,
    clock: new VirtualClock(),
  });
  screen.enter();
  return { screen, terminal, draws: (next) => (draw = next) };
}
