/** The documentation site: every page of the repository, with search, dark and light. `npm run docs` builds it. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, normalize, resolve } from 'node:path';
import { defineConfig, type DefaultTheme } from 'vitepress';
// As it lies beside `.site`, from where this runs.
import { exampleLinks } from '../../tools/playground-links.ts';

/** The checkout: the generator runs in a directory of its own, where its packages are. */
const home = process.env['SITE_HOME'] ?? process.cwd();
/**
 * The target of links to sources, for example `https://github.com/OWNER/NAME/blob/main`; without it they are
 * plain text.
 */
const source = process.env['SOURCE_URL'] ?? '';

const base = process.env['SITE_BASE'] ?? '/';

/** The text of a file of the checkout; null: there is none. */
const read = (path: string): string | null => {
  const file = join(home, path);
  return existsSync(file) && statSync(file).isFile() ? readFileSync(file, 'utf8') : null;
};

const titleOf = (file: string): string =>
  /^# (.+)$/m.exec(readFileSync(join(home, file), 'utf8'))?.[1]?.replaceAll('`', '') ??
  basename(file, '.md');

/** A part of the sidebar with the pages that match a pattern. */
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
  // A dead link between pages fails the build.
  ignoreDeadLinks: 'localhostLinks',
  lastUpdated: false,
  // The pages are not below the directory that has the packages.
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
    // Both have words and braces.
    languageAlias: { corefile: 'nginx' },
    config(md) {
      // Two braces are text in our pages, not a Vue expression.
      const text = (content: string): string =>
        md.utils.escapeHtml(content).replaceAll('{{', '&#123;&#123;');
      md.renderer.rules.text = (tokens, at) => text(tokens[at]!.content);
      md.renderer.rules.code_inline = (tokens, at) =>
        `<code v-pre>${text(tokens[at]!.content)}</code>`;
      const fence = md.renderer.rules.fence!;
      md.renderer.rules.fence = (...given) => {
        const [tokens, at] = given;
        const { info, content } = tokens[at]!;
        // The router of the site would look for a page: a target keeps it away.
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
            // Sources are not pages: they are linked where they are published, or not at all.
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
