/** The pictures on pages match what `node tools/pictures.ts` currently draws, and each page shows both variants. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { diagramSvg } from '../tools/pictures/diagram.ts';
import { palettes } from '../tools/pictures/palette.ts';
import { terminalSvg } from '../tools/pictures/terminal.ts';
import { commands, pictures } from '../tools/pictures.ts';

const { light } = palettes;

describe('the pictures on the pages', () => {
  test('are the output of their texts and commands', () => {
    const drawn = pictures();
    assert.deepEqual(globSync('docs/pictures/*.svg').toSorted(), [...drawn.keys()].toSorted());
    for (const [file, text] of drawn)
      assert.equal(readFileSync(file, 'utf8'), text, `${file}: run node tools/pictures.ts`);
  });

  test('of terminals show commands of the README or the tour', () => {
    const pages = ['README.md', 'docs/tour.md'].map((page) =>
      readFileSync(page, 'utf8').replaceAll(/\\\n\s*/g, ''),
    );
    for (const command of Object.values(commands))
      assert.ok(
        pages.some((page) => page.includes(command)),
        command,
      );
  });

  test('are shown in both colours, with a text alternative', () => {
    const shown = globSync(['*.md', 'docs/*.md']).flatMap((page) => [
      ...readFileSync(page, 'utf8').matchAll(/<picture>[^]*?<\/picture>/g),
    ]);
    assert.ok(shown.length >= 5);
    for (const [picture] of shown) {
      const [, dark, , name, alt] =
        /srcset="([^"]*?([\w-]+)-dark\.svg)"[^]*src="[^"]*?([\w-]+)-light\.svg" alt="([^"]+)"/.exec(
          picture,
        ) ?? [];
      assert.ok(dark?.endsWith(`${name}-dark.svg`), picture);
      assert.ok(alt!.length > 20, picture);
    }
  });
});

describe('a picture', () => {
  test('of a terminal has its colours, and letters of XML are escaped', () => {
    const svg = terminalSvg('ndots a <b>', '\u001B[31mred\u001B[0m plain\n', light);
    assert.match(svg, /\$ ndots a &lt;b&gt;/);
    assert.match(svg, new RegExp(`fill="${light.red}">red</text>`));
    assert.match(svg, /preserve">plain<\/text>/);
  });

  test('of boxes has an arrow between the sides that face each other', () => {
    const text = 'size 30 10\nbox a 0 0 10 4 A | more\nbox b 20 0 10 4 B\narrow a b text\n';
    assert.match(diagramSvg(text, light), /<line x1="100" y1="20" x2="200" y2="20"/);
    const below = 'size 10 30\nbox a 0 0 10 4 A\nbox b 0 20 10 4 B\narrow b a\n';
    assert.match(diagramSvg(below, light), /<line x1="50" y1="200" x2="50" y2="40"/);
  });

  test('names the line that it cannot read', () => {
    assert.throws(() => diagramSvg('size 1 1\ncircle a', light), /line 2: circle a/);
    assert.throws(() => diagramSvg('arrow a b', light), /line 1: no such box/);
  });
});
