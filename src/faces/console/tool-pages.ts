/** The console's tools, loaded on first use. They are the playground's panels, with live traffic as their input. */
import { batch, effect, signal, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import { corefilePanel, followCorefile } from '../playground/corefile-panel.ts';
import { followLookup, lookupPanel } from '../playground/lookup-panel.ts';
import { inputs, page as panel } from '../playground/page-state.ts';
import type { TraceInputView } from '../../tools/watch/trace-input.ts';
import { followReloads, reload, reloadList } from './reload-list.ts';
import { showsClients, tool, toolInput, type ToolName } from './page-state.ts';
import { readJson } from './read-json.ts';
import { client, clientChoice, followClient } from './trace-client.ts';

type Fields = Readonly<Record<string, Signal<string>>>;

type PanelName = 'trace' | 'configuration';

const fields: Readonly<Record<PanelName, Fields>> = {
  trace: { ...inputs.lookup, client },
  configuration: { ...inputs.corefile, reload },
};

inputs.corefile.corefile.value = '';
const all = Object.values(fields).flatMap((each) => Object.values(each));
const examples = new Map(all.map((field) => [field, field.peek()] as const));
/** Default values, which the address omits. */
const usual = new Map(all.map((field) => [field, signal(field.peek())] as const));
/** File name of the Corefile. Empty if it was pasted. */
const corefileFrom = signal('');

/** The current tool if it is in this module, or null if there is none. */
function shownPanel(): PanelName | null {
  return tool.value === 'trace' || tool.value === 'configuration' ? tool.value : null;
}

export function toolPage(name: ToolName): TemplateResult {
  return html`<div class="tools">
    ${
      name === 'trace'
        ? html`${showsClients ? clientChoice() : nothing} ${lookupPanel()}`
        : html`${
            corefileFrom.value === ''
              ? nothing
              : html`<p class="quiet">
                  Read from <code>${corefileFrom.value}</code>. Edits stay in this page.
                </p>`
          }
          ${corefilePanel()} ${reloadList()}`
    }
  </div>`;
}

/** Runs the engines for the current tool, and keeps its inputs and the address in sync. */
export function followTools(): void {
  loadStyles();
  effect(() => {
    const name = shownPanel();
    panel.value = name === 'trace' ? 'lookup' : name === null ? 'capture' : 'corefile';
  });
  effect(readInput);
  effect(writeInput);
  if (showsClients)
    followClient(
      () => inputs.lookup.name.value.trim(),
      () => tool.value === 'trace',
      takeClient,
    );
  followReloads();
  void readCorefile();
  followLookup();
  followCorefile();
}

/** Copies the input from the address into the fields. */
function readInput(): void {
  const name = shownPanel();
  const given = toolInput.value;
  if (name === null) return;
  batch(() => {
    for (const [key, field] of Object.entries(fields[name]))
      field.value = given.get(key) ?? usual.get(field)!.peek();
  });
}

/** Copies the fields to the address. */
function writeInput(): void {
  const name = shownPanel();
  if (name === null) return;
  const given = Object.entries(fields[name]).flatMap(([key, field]) =>
    field.value === usual.get(field)!.value ? [] : [[key, field.value] as const],
  );
  const before = toolInput.peek();
  if (given.length === before.size && given.every(([key, value]) => before.get(key) === value))
    return;
  toolInput.value = new Map(given);
}

/** Makes the client's input the default, so that the address contains only edits. */
function takeClient(input: TraceInputView | null): void {
  const { resolv, answers, cluster, clients } = inputs.lookup;
  batch(() => {
    setUsual(resolv, input?.resolvConf);
    setUsual(answers, input?.answers);
    setUsual(cluster, input === null ? undefined : 'no');
    setUsual(clients, input?.isUsualResolver === false ? 'all' : undefined);
  });
}

/** @param text undefined: use the example's text */
function setUsual(field: Signal<string>, text: string | undefined): void {
  const value = text ?? examples.get(field)!;
  const before = usual.get(field)!;
  const isEdited = field.peek() !== before.peek();
  before.value = value;
  if (!isEdited) field.value = value;
}

async function readCorefile(): Promise<void> {
  const found = await readJson<{ readonly name: string; readonly text: string }>('/api/corefile');
  if (found === null) return;
  batch(() => {
    corefileFrom.value = found.name;
    setUsual(inputs.corefile.corefile, found.text);
  });
}

function loadStyles(): void {
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = '/tools.css';
  document.head.append(link);
}
