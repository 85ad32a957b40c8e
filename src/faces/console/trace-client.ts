/** The client to trace as, with its search path, resolver and replies from the live model. */
import { effect, signal, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import type { TraceInputView } from '../../tools/watch/trace-input.ts';
import type { ClientRow, ClientsView } from '../../tools/watch/view.ts';
import { partyName, printShare } from '../cli/live/figures.ts';
import { ofCluster, refusalText } from './page-state.ts';
import { readJson } from './read-json.ts';

/** The client's address. If empty, there is no client and the form contains the input. */
export const client: Signal<string> = signal('');
/** Trace input for that client, or null if not received. */
const known: Signal<TraceInputView | null> = signal(null);
const refusal = signal('');
/** Known clients, those with the most lookups first. */
const seen: Signal<readonly ClientRow[]> = signal([]);

/** @param give receives the input, or null if no client is selected */
export function followClient(
  name: () => string,
  isShown: () => boolean,
  give: (input: TraceInputView | null) => void,
): void {
  effect(() => {
    if (isShown()) void readClients();
  });
  effect(() => {
    const address = client.value;
    const wanted = name();
    if (address !== '') return void read(address, wanted, give);
    known.value = null;
    refusal.value = '';
    give(null);
  });
}

let latest = 0;

async function read(
  address: string,
  name: string,
  give: (input: TraceInputView | null) => void,
): Promise<void> {
  const own = ++latest;
  const query = ofCluster({ client: address, name });
  try {
    const response = await fetch(`/api/trace?${query}`);
    const found = (await response.json()) as TraceInputView | { text: string };
    if (own !== latest || client.peek() !== address) return;
    if ('text' in found) {
      refusal.value = refusalText(found);
      known.value = null;
      return;
    }
    refusal.value = '';
    known.value = found;
    give(found);
  } catch {
    refusal.value = 'The console is not responding.';
  }
}

async function readClients(): Promise<void> {
  const query = ofCluster({ sort: 'lookups', rows: '200' });
  const found = await readJson<ClientsView>(`/api/view/clients?${query}`);
  if (found !== null) seen.value = found.rows.filter(({ lookups }) => lookups > 0);
}

export function clientChoice(): TemplateResult {
  const chosen = client.value;
  const isListed = seen.value.some(({ address }) => address === chosen);
  return html`<div class="as-client">
    <label class="label" for="as-client">Client</label>
    <select
      id="as-client"
      aria-describedby="as-client-note"
      @change=${({ target }: Event) => (client.value = (target as HTMLSelectElement).value)}
    >
      <option value="" ?selected=${chosen === ''}>None: the resolv.conf below</option>
      ${chosen !== '' && !isListed ? html`<option value=${chosen} selected>${chosen}</option>` : nothing}
      ${seen.value.map(
        (row) =>
          html`<option value=${row.address} ?selected=${row.address === chosen}>
            ${clientLabel(row)}
          </option>`,
      )}
    </select>
    <p id="as-client-note" class=${refusal.value === '' ? 'quiet' : 'error'}>${note()}</p>
  </div>`;
}

function clientLabel(row: ClientRow): string {
  const { kinds } = row.resolver;
  const name = partyName(row);
  return [name, ...(name === row.address ? [] : [row.address]), kinds.join(' or ')]
    .filter((part) => part !== '')
    .join(' · ');
}

function note(): string {
  if (refusal.value !== '') return refusal.value;
  if (known.value === null)
    return 'Choose a client to use its search path, its resolver and the replies it received.';
  const { resolver, notes } = known.value;
  const kind =
    resolver.kinds.length === 0
      ? 'Its resolver is not known.'
      : `Its resolver is ${resolver.kinds.join(' or ')}${resolver.confidence === null ? '' : ` (${printShare(resolver.confidence)} sure)`}.`;
  return [kind, ...notes].join(' ');
}
