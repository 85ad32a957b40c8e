/** Groups the files that people read into areas that can be checked separately. */
import { globSync } from 'node:fs';
import type { Opening } from './page-rules.ts';

export interface Area {
  readonly name: string;
  readonly files: readonly string[];
  readonly opening: Opening;
}

interface PageArea {
  readonly name: string;
  readonly globs: readonly string[];
  readonly opening: Opening;
}

/** The areas for pages. A file belongs to the first area that matches it. */
const pageAreas: readonly PageArea[] = [
  { name: 'findings page', globs: ['docs/findings.md'], opening: 'free' },
  {
    name: 'index pages',
    globs: ['*.md', '.github/*.md', 'docs/README.md', 'docs/*/README.md', 'docs/glossary.md'],
    opening: 'free',
  },
  { name: 'pages', globs: ['docs/*.md'], opening: 'purpose and command' },
  { name: 'rule pages', globs: ['docs/rules/*.md'], opening: 'free' },
  { name: 'lab pages', globs: ['docs/lab/*.md'], opening: 'purpose and command' },
  { name: 'decisions', globs: ['docs/decisions/*.md'], opening: 'purpose' },
  { name: 'plugin pages', globs: ['src/**/*.md'], opening: 'purpose and command' },
  { name: 'deployment pages', globs: ['deploy/**/*.md'], opening: 'purpose and command' },
  { name: 'example pages', globs: ['examples/**/*.md'], opening: 'purpose and command' },
];

/** All areas: pages, the sources in each subdirectory of `src`, and `test`, `tools` and `bench`. */
export function areas(): readonly Area[] {
  const owned = new Set<string>();
  const pages = pageAreas.map(({ name, globs, opening }) => {
    const files = globSync(globs)
      .toSorted()
      .filter((file) => !owned.has(file));
    for (const file of files) owned.add(file);
    return { name, files, opening };
  });
  const sources = globSync(['src/**/*.ts', 'test/**/*.ts', 'tools/**/*.ts', 'bench/**/*.ts']);
  const rooms = Object.entries(Object.groupBy(sources.toSorted(), roomOf));
  return [
    ...pages,
    ...rooms.map(([name, files]) => ({ name, files: files!, opening: 'free' as const })),
  ];
}

function roomOf(file: string): string {
  const parts = file.split('/');
  return parts[0] === 'src' ? parts.slice(0, 3).join('/') : parts[0]!;
}
