/** The page, which consists of the bar with its tabs and one panel per tab. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { show } from '../web/show.ts';
import { panelId, tabId, tabList, type Tab } from '../web/tabs.ts';
import { applyTheme, themeSwitch } from '../web/theme.ts';
import { copyButton } from '../web/copy-button.ts';
import { capturePanel } from './capture-panel.ts';
import { corefilePanel, followCorefile } from './corefile-panel.ts';
import { diffPanel, followDiff } from './diff-panel.ts';
import { followLookup, lookupPanel } from './lookup-panel.ts';
import { followAddress, page, tooLong, type PageName } from './page-state.ts';

const tabs: readonly Tab<PageName>[] = [
  { name: 'lookup', label: 'Lookup' },
  { name: 'corefile', label: 'Corefile' },
  { name: 'diff', label: 'Diff' },
  { name: 'capture', label: 'Capture' },
];

const panels: Readonly<Record<PageName, () => TemplateResult>> = {
  lookup: lookupPanel,
  corefile: corefilePanel,
  diff: diffPanel,
  capture: capturePanel,
};

function bar(): TemplateResult {
  return html`<h1 class="brand">ndots <span>playground</span></h1>
    ${tabList('Tools', tabs, page.value, (name) => (page.value = name))}
    <span class="grow"></span>
    ${
      page.value === 'capture'
        ? nothing
        : tooLong.value
          ? html`<span class="quiet">Too long for a link</span>`
          : copyButton('Copy link', () => location.href)
    }
    ${themeSwitch()}`;
}

function main(): TemplateResult {
  const name = page.value;
  return html`${tabs.map(
    (tab) =>
      html`<section
        role="tabpanel"
        class="panel"
        id=${panelId(tab.name)}
        aria-labelledby=${tabId(tab.name)}
        ?hidden=${tab.name !== name}
      >
        ${tab.name === name ? panels[name]() : nothing}
      </section>`,
  )}`;
}

/** Returns an element without the content that is only for browsers without scripts. */
function emptied(id: string): HTMLElement {
  const element = document.getElementById(id)!;
  element.replaceChildren();
  return element;
}

applyTheme();
followAddress();
show(emptied('bar'), bar);
show(emptied('main'), main);
followLookup();
followCorefile();
followDiff();
