/**
 * The documentation site, with all pages in the repository, search, and dark and light themes. `npm run docs` builds
 * it.
 */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, normalize, resolve } from 'node:path';
import { defineConfig, type DefaultTheme } from 'vitepress';
// Relative to `.site`, where this file runs.
import { exampleLinks } from '../../tools/playground-links.ts';

/** The checkout. The generator runs in a different directory, which has its packages. */
const home = process.env['SITE_HOME'] ?? process.cwd();
/**
 * The base address for links to sources, such as `https://github.com/OWNER/NAME/blob/main`. Without it, they are plain
 * text.
 */
const source = process.env['SOURCE_URL'] ?? '';

const base = process.env['SITE_BASE'] ?? '/';

/** The text of a file in the checkout, or null if it does not exist. */
const read = (path: string): string | null => {
  const file = join(home, path);
  return existsSync(file) && statSync(file).isFile() ? readFileSync(file, 'utf8') : null;
};

const titleOf = (file: string): string =>
  /^# (.+)$/m.exec(readFileSync(join(home, file), 'utf8'))?.[1]?.replaceAll('`', '') ??
  basename(file, '.md');

/** A sidebar section with the pages that match a pattern. */
function part(text: string, pattern: string): DefaultTheme.SidebarItem {
  const items = globSync(pattern, { cwd: home })
    .toSorted()
    .map((file) => ({ text: titleOf(file), link: `/${file.replace(/\.md$/, '')}` }));
  return { text, items, collapsed: true };
}

export default defineConfig({
  title: 'ndots',
  description: 'Kubernetes DNS you can see through',
  srcDir: home,
  srcExclude: [
    '**/node_modules/**',
    'dist/**',
    'test/**',
    'bench/**',
    'release/**',
    '.*/**',
    'site/**',
  ],
  outDir: join(home, 'site'),
  base,
  rewrites: { 'README.md': 'index.md' },
  // Dead links between pages fail the build.
  ignoreDeadLinks: 'localhostLinks',
  lastUpdated: false,
  // The pages are outside the directory that has the packages.
  vite: {
    resolve: {
      alias: [
        { find: /^vue$/, replacement: resolve('node_modules/vue/dist/vue.runtime.esm-bundler.js') },
        {
          find: /^vue\/server-renderer$/,
          replacement: resolve('node_modules/vue/server-renderer/index.mjs'),
        },
      ],
    },
  },
  markdown: {
    // Both languages consist of words and braces.
    languageAlias: { corefile: 'nginx' },
    config(md) {
      // Double braces are literal text on our pages, not a Vue expression.
      const text = (content: string): string =>
        md.utils.escapeHtml(content).replaceAll('{{', '&#123;&#123;');
      md.renderer.rules.text = (tokens, at) => text(tokens[at]!.content);
      md.renderer.rules.code_inline = (tokens, at) =>
        `<code v-pre>${text(tokens[at]!.content)}</code>`;
      const fence = md.renderer.rules.fence!;
      md.renderer.rules.fence = (...given) => {
        const [tokens, at] = given;
        const { info, content } = tokens[at]!;
        // The site's router would look for a page; a link with a target bypasses it.
        const links = exampleLinks({ info, text: content }, `${base}playground/`, read).map(
          ({ text: words, href }) =>
            `<a href="${md.utils.escapeHtml(href)}" target="_self">${text(words)}</a>`,
        );
        return `${fence(...given)}${links.length === 0 ? '' : `<p>${links.join(' · ')}</p>`}`;
      };
      md.core.ruler.push('sources', ({ tokens, env }) => {
        const from = dirname(String((env as { relativePath?: string }).relativePath ?? ''));
        for (const { children } of tokens)
          for (const token of children ?? []) {
            if (token.type !== 'link_open') continue;
            const href = token.attrGet('href') ?? '';
            if (/^(?:[a-z]+:|#)/.test(href) || /\.md(?:#|$)/.test(href)) continue;
            const file = normalize(join(from, href.replace(/#.*/, ''))).replace(/\/$/, '');
            if (!existsSync(join(home, file))) continue;
            // Sources are not pages, so they are either linked to where they are published or not linked at all.
            if (source === '') token.tag = 'span';
            token.attrs = source === '' ? [] : [['href', `${source}/${file}`]];
            if (source !== '') continue;
            const after = children!.slice(children!.indexOf(token));
            after.find(({ type }) => type === 'link_close')!.tag = 'span';
          }
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Tour', link: '/docs/tour' },
      { text: 'At night', link: '/docs/operate' },
      { text: 'Playground', link: '/playground/', target: '_self' },
      { text: 'All pages', link: '/docs/README' },
    ],
    sidebar: [
      part('Pages', 'docs/*.md'),
      part('Plugins', 'src/server/plugins/*/*.md'),
      part('Rules of lint', 'docs/rules/*.md'),
      part('Incidents', 'docs/lab/*.md'),
      part('Decisions', 'docs/decisions/*.md'),
      part('Deployment and examples', '{deploy,examples}/**/*.md'),
    ],
  },
});
