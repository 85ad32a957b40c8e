import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AddressOwner } from '../../server/kube/pods/address-owners.ts';
import { LiveModel } from './live-model.ts';
import { PrivateViews, type OpenViews } from './view-privacy.ts';
import type { FindingsView, ViewName, ViewQuery, Views } from './view.ts';

/** More pods than a list of clients shows. */
const PODS = 1500;
const nameOf = (pod: number): string => `web-${pod}-x7k2p`;
const addressOf = (pod: number): string => `10.244.${pod >> 8}.${pod & 255}`;

function pod(name: string): AddressOwner {
  return { kind: 'pod', namespace: 'shop', name, workload: 'deploy/web', node: 'node1' };
}

/** A model whose only finding mentions a pod in every way that a text may. */
function modelOf(named: number): OpenViews {
  const model = new LiveModel();
  model.advance(1_700_000_000_000);
  model.name(new Map(Array.from({ length: PODS }, (_, i) => [addressOf(i), pod(nameOf(i))])));
  const name = nameOf(named);
  const text = `shop/${name} (${addressOf(named)}): kubectl -n shop exec pod/${name} or ${name}.`;
  const row = {
    ...{ id: text, code: 'ND2001', title: '', subject: text, severity: 'warning' },
    ...{ seen: [text], why: text, fix: [text], prove: text, disproved: text, places: [text] },
    who: { clients: 1, nodes: 1, groups: [{ name: text }], resolvers: [], affected: [text] },
    examples: [],
  };
  return {
    parties: model.parties,
    map: (query) => model.map(query),
    reloads: () => model.reloads(),
    traceInput: () => null,
    view<V extends ViewName>(query: ViewQuery<V>): Views[V] {
      const view = model.view(query);
      return query.view === 'findings'
        ? ({ ...view, rows: [row] } as unknown as FindingsView as Views[V])
        : view;
    },
  };
}

for (const named of [3, PODS - 1])
  test(`a pod is named nowhere in findings without clients, however many pods there are: ${named}`, () => {
    const views = new PrivateViews(modelOf(named), 'no-clients', 'key');
    const text = JSON.stringify(views.view({ view: 'findings' }).rows);
    assert.ok(!text.includes(nameOf(named)), text);
    assert.ok(!text.includes(addressOf(named)), text);
    assert.match(text, /shop\/deploy\/web/);
  });
