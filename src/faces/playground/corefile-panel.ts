/** The Corefile panel, with findings next to their lines and each server block's plugin chain. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { commandLine } from './command-line.ts';
import { EngineClient } from './engine-client.ts';
import type { ChainLink, LintResult, ShownBlock } from './engines/lint-engine.ts';
import { lineEditor, goToLine, type LineMark } from './line-editor.ts';
import { inputs } from './page-state.ts';
import { engineResults, follow } from './shown-state.ts';

const engine = new EngineClient('lint');
const { corefile } = inputs.corefile;
const EDITOR = 'corefile-text';

/** Lints when the panel is opened, and again after each change. */
export function followCorefile(): void {
  follow(
    'corefile',
    () => corefile.value,
    (text) => {
      if (text.trim() === '') engine.stop();
      else engine.run({ corefile: text });
    },
  );
}

export function corefilePanel(): TemplateResult {
  const findings = engine.result.value?.document.findings ?? [];
  const marks = findings.map(({ line, severity }): LineMark => ({ line, severity }));
  return html`<div class="split even">
    <form class="inputs" @submit=${(event: Event) => event.preventDefault()}>
      <h2>Corefile</h2>
      ${lineEditor(EDITOR, 'Corefile, or a ConfigMap or Helm values that hold one', corefile, marks)}
    </form>
    <div class="results">${engineResults(engine, idle, summary, results)}</div>
  </div>`;
}

const idle = html`<p class="empty">Paste a Corefile to see its chain and its faults.</p>`;

function results(result: LintResult): TemplateResult {
  return html`${findingList(result)}
    <h3>The chain: the plugins that a query passes, in this order</h3>
    ${
      result.blocks.length === 0
        ? html`<p class="quiet">No server block can be read.</p>`
        : result.blocks.map(chain)
    }
    ${commandLine('ndots lint Corefile', 'with the text in the file Corefile')}`;
}

/** Counts findings, in the command line's wording. */
function summary({ document: { findings, suppressed } }: LintResult): string {
  const count = (severity: string, one: string, many: string): string => {
    const number = findings.filter((each) => each.severity === severity).length;
    return `${number} ${number === 1 ? one : many}`;
  };
  const ignored = suppressed > 0 ? `, ${suppressed} ignored` : '';
  return `${count('error', 'error', 'errors')}, ${count('warning', 'warning', 'warnings')}, ${count('note', 'note', 'notes')}${ignored}`;
}

function findingList({ document: { findings, notJudged } }: LintResult): TemplateResult {
  if (findings.length === 0)
    return html`<p class="quiet">
      ${
        notJudged.length === 0
          ? 'No rule finds anything to change.'
          : `There is nothing to lint: the text holds ${notJudged[0]!.holds}.`
      }
    </p>`;
  return html`<ul class="findings">
    ${findings.map(
      ({ code, severity, text, line, hint, remedy, excerpt }) =>
        html`<li class="finding ${severity}">
          <p class="head">
            <span class="badge ${severity}">${severity}</span>
            <span class="codeword">${code}</span>
            <button type="button" class="link" @click=${() => goToLine(EDITOR, line)}>
              line ${line}
            </button>
          </p>
          <p class="text">${text}</p>
          ${excerpt === null ? nothing : html`<pre class="excerpt">${excerpt.trim()}</pre>`}
          ${hint === null ? nothing : html`<p class="hint">${hint}</p>`}
          ${remedy === null ? nothing : html`<p class="remedy">${remedy}</p>`}
        </li>`,
    )}
  </ul>`;
}

function chain({ zones, chain: links, line }: ShownBlock): TemplateResult {
  const inChain = links.filter(({ role }) => role === 'link');
  const beside = links.filter(({ role }) => role === 'beside');
  const heading = zones.join(' ');
  return html`<section class="block" aria-label="Server block ${heading}">
    <h4>
      <code>${heading}</code>
      <button type="button" class="link" @click=${() => goToLine(EDITOR, line)}>
        line ${line}
      </button>
    </h4>
    <ol class="chain" aria-label="Chain of ${heading}">
      <li class="end">query</li>
      ${inChain.map(link)}
      <li class="end">${inChain.some(({ plugin }) => LAST.has(plugin)) ? 'reply' : 'REFUSED'}</li>
    </ol>
    ${
      beside.length === 0
        ? nothing
        : html`<p class="quiet beside">
            Beside the chain: ${beside.map(({ plugin }) => plugin).join(', ')}
          </p>`
    }
  </section>`;
}

/** Plugins that answer queries. A chain that includes one does not end in REFUSED. */
const LAST: ReadonlySet<string> = new Set([
  ...['forward', 'grpc', 'whoami', 'erratic', 'proxy', 'file', 'auto', 'secondary', 'template'],
  ...['kubernetes', 'hosts', 'etcd', 'k8s_external'],
]);

/** Limit on directive words in a chain box. */
const WORDS_MAX = 4;

function link({ plugin, args, line, severity }: ChainLink): TemplateResult {
  const words = `${args.slice(0, WORDS_MAX).join(' ')}${args.length > WORDS_MAX ? ' …' : ''}`;
  return html`<li>
    <button type="button" class="plugin ${severity ?? ''}" @click=${() => goToLine(EDITOR, line)}>
      <strong>${plugin}</strong>${words === '' ? nothing : html` <span>${words}</span>`}
      <span class="hidden">${` line ${line}${severity === null ? '' : `, ${severity}`}`}</span>
    </button>
  </li>`;
}
