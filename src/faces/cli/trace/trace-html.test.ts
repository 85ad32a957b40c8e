import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runTrace, storyFile } from '../../../../test/kit/trace-command.ts';

const gke = ['--resolv-conf', storyFile('gke.conf'), '--answers'];
const html = async (...words: string[]): Promise<string> =>
  (await runTrace([...words, '-o', 'html'])).out;

interface Bar {
  readonly left: number;
  readonly width: number;
}

/** Positions of the bars, percent. */
function bars(page: string): Bar[] {
  return [...page.matchAll(/class="bar \w+" style="left:([\d.]+)%;width:([\d.]+)%"/g)].map(
    ([, left, width]) => ({ left: Number(left), width: Number(width) }),
  );
}

describe('a trace as a page', () => {
  test('bars are to scale: six rounds of 20 ms take a sixth each, one after the other', async () => {
    const found = bars(await html('www.google.com', ...gke, storyFile('datadog.yaml')));
    assert.equal(found.length, 12);
    found.forEach(({ left, width }, index) => {
      assert.ok(Math.abs(left - (Math.floor(index / 2) * 100) / 6) < 0.1, `${left}`);
      assert.ok(Math.abs(width - 100 / 6) < 0.1, `${width}`);
    });
  });

  test('the bar of a lost packet is as long as the wait', async () => {
    const page = await html('www.google.com', ...gke, storyFile('datadog-loss.yaml'));
    const widest = Math.max(...bars(page).map(({ width }) => width));
    assert.ok(widest > 95, `${widest}`);
    assert.match(page, /AAAA no answer in 5\.0\d s/);
  });

  test('it shows cheaper alternatives', async () => {
    const page = await html('www.google.com', ...gke, storyFile('datadog.yaml'));
    assert.match(page, /<h3>Cheaper<\/h3>[^]*write a final dot/);
  });

  test('several clients are one page with a table that leads to each', async () => {
    const page = await html(
      'www.google.com',
      '--client',
      'glibc,musl,go',
      ...gke,
      storyFile('datadog.yaml'),
    );
    assert.equal(page.match(/<!doctype html>/g)?.length, 1);
    const links = [...page.matchAll(/<a href="#([^"]+)">(?:glibc|musl|go)/g)].map(
      ([, id]) => id ?? '',
    );
    assert.equal(links.length, 3);
    for (const id of links) assert.ok(page.includes(`<section id="${id}">`), id);
  });

  test('it contains no scripts, loads nothing, and escapes untrusted data', async () => {
    const page = await html('a<script>b', '--plan', '--resolv-conf', storyFile('box.conf'));
    assert.doesNotMatch(page, /<script|src=|https?:|@import|url\(/);
    assert.ok(page.includes('a&lt;script&gt;b'));
  });

  test('it fits a phone: the viewport is as wide as the device, and nothing has a fixed width', async () => {
    const page = await html('www.google.com', ...gke, storyFile('datadog.yaml'));
    assert.match(page, /<meta name="viewport" content="width=device-width, initial-scale=1">/);
    assert.doesNotMatch(page, /width="\d|[;{"]width:\d+px/);
  });
});
