import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * `ndots top` in a real terminal. tmux shows its output and presses its keys. It must stay usable, however `ndots top`
 * ends.
 */

const directory = mkdtempSync(join(tmpdir(), 'top-tmux-'));
const root = join(import.meta.dirname, '../..');
const program = join(root, 'bin/ndots');
const file = join(root, 'examples/captures/tcp-blocked.pcapng');
const skip = spawnSync('tmux', ['-V']).status === 0 ? false : 'tmux is not installed';

/** A shell in its own terminal. */
class Pane {
  readonly #socket = join(directory, `s${Math.random().toString(36).slice(2)}`);

  constructor() {
    const size = ['-x', '100', '-y', '30'];
    this.#tmux('-f', '/dev/null', 'new-session', '-d', ...size, 'env PS1="ready> " sh');
  }

  #tmux(...words: readonly string[]): string {
    return execFileSync('tmux', ['-S', this.#socket, ...words], { encoding: 'utf8' });
  }

  keys(...keys: readonly string[]): void {
    this.#tmux('send-keys', ...keys);
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-x', String(columns), '-y', String(rows));
  }

  get screen(): string {
    return this.#tmux('capture-pane', '-p');
  }

  /** The modes that the program sets: alternate screen on or off, cursor shown or hidden. */
  get modes(): string {
    return this.#tmux('display-message', '-p', '#{alternate_on} #{cursor_flag}').trim();
  }

  async shows(pattern: RegExp): Promise<string> {
    for (let tries = 0; tries < 600; tries++) {
      const { screen } = this;
      if (pattern.test(screen)) return screen;
      await wait(100);
    }
    assert.fail(`${String(pattern)} is not on the screen:\n${this.screen}`);
  }

  /** Starts `top` with the example and writes its process ID to a file. */
  async top(words = '--speed max'): Promise<number> {
    const pid = join(directory, 'pid');
    rmSync(pid, { force: true });
    this.keys(`sh -c 'echo $$ > ${pid}; exec ${program} top ${file} ${words}'`, 'Enter');
    await this.shows(/critical ND3011/);
    assert.equal(this.modes, '1 0');
    return Number(readFileSync(pid, 'utf8'));
  }

  /** Checks that the shell is back with its screen and cursor, and that it echoes input. */
  async isBack(): Promise<void> {
    for (let tries = 0; tries < 600 && this.modes !== '0 1'; tries++) await wait(100);
    assert.equal(this.modes, '0 1');
    this.keys('echo still-$((40+2))', 'Enter');
    const screen = await this.shows(/(?:^|> )still-42$/m);
    assert.match(screen, /echo still-\$\(\(40\+2\)\)/);
  }

  close(): void {
    spawnSync('tmux', ['-S', this.#socket, 'kill-server']);
  }
}

after(() => {
  if (existsSync(directory)) rmSync(directory, { recursive: true, force: true });
});

describe('top in tmux', { skip, timeout: 400_000 }, () => {
  test('draws pages, reads keys, follows the size, and restores the terminal', async () => {
    const pane = new Pane();
    try {
      await pane.shows(/ready>/);
      await pane.top();
      pane.keys('2');
      await pane.shows(/answered +4 +0 +0 10\.244\.1\.4 +large\.example\.com/);
      pane.keys('Down', 'Enter');
      await pane.shows(/tcp/);
      pane.keys('Escape');
      await pane.shows(/RESULT/);
      pane.resize(60, 15);
      await pane.shows(/^ {3}(?:TIME|TOOK| +TOOK).*NAME/m);
      pane.keys('q');
      await pane.isBack();
    } finally {
      pane.close();
    }
  });

  for (const signal of ['TERM', 'INT', 'HUP'])
    test(`restores the terminal at SIG${signal}`, async () => {
      const pane = new Pane();
      try {
        await pane.shows(/ready>/);
        process.kill(await pane.top(), `SIG${signal}`);
        await pane.isBack();
      } finally {
        pane.close();
      }
    });

  test('Ctrl-Z returns the terminal to the shell, and fg draws the view again', async () => {
    const pane = new Pane();
    try {
      await pane.shows(/ready>/);
      await pane.top();
      pane.keys('C-z');
      await pane.isBack();
      pane.keys('fg', 'Enter');
      await pane.shows(/critical ND3011/);
      pane.keys('q');
      await pane.isBack();
    } finally {
      pane.close();
    }
  });
});
