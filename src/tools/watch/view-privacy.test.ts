import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shopPod } from '../../../test/kit/watched.ts';
import { LiveModel } from './live-model.ts';
import { PrivateViews, type OpenViews } from './view-privacy.ts';
import type { ChangeRow, FindingsView, NowView, ViewName, ViewQuery, Views } from './view.ts';

/** More pods than a list of clients shows. */
const PODS = 1500;
const nameOf = (pod: number): string => `web-${pod}-x7k2p`;
const addressOf = (pod: number): string => `10.244.${pod >> 8}.${pod & 255}`;

/** A model whose only finding mentions a pod in every way that a text may. */
function modelOf(named: number): OpenViews {
  const model = new LiveModel();
  model.advance(1_700_000_000_000);
  model.name(
    new Map(
      Array.from({ length: PODS }, (_, i) => [addressOf(i), shopPod(nameOf(i), 'deploy/web')]),
    ),
  );
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
      if (query.view === 'findings') {
        const rows = query.id === undefined || query.id === row.id ? [row] : [];
        return { ...view, rows } as unknown as FindingsView as Views[V];
      }
      if (query.view !== 'now') return view;
      const change: ChangeRow = {
        ...{ atMs: model.nowMs, kind: 'finding-began', text },
        about: { view: 'findings', id: row.id },
      };
      const { changes } = view as NowView;
      return { ...view, changes: { ...changes, rows: [change] } } as unknown as Views[V];
    },
  };
}

for (const named of [3, PODS - 1])
  test(`a pod is named nowhere in findings without clients, however many pods there are: ${named}`, () => {
    const views = new PrivateViews(modelOf(named), 'no-clients', 'key');
    const { changes } = views.view({ view: 'now' });
    for (const rows of [views.view({ view: 'findings' }).rows, changes.rows]) {
      const text = JSON.stringify(rows);
      assert.ok(!text.includes(nameOf(named)), text);
      assert.ok(!text.includes(addressOf(named)), text);
      assert.match(text, /shop\/deploy\/web/);
    }
  });

test('a finding is found by the ID that is shown, which a guessed pod does not confirm', () => {
  const open = modelOf(3);
  const views = new PrivateViews(open, 'no-clients', 'key');
  const [shown] = views.view({ view: 'findings' }).rows;
  assert.deepEqual(views.view({ view: 'findings', id: shown!.id }).rows, [shown]);
  assert.deepEqual(views.view({ view: 'now' }).changes.rows[0]!.about?.id, shown!.id);
  const [secret] = open.view({ view: 'findings' }).rows;
  const { rows, shown: count, total } = views.view({ view: 'findings', id: secret!.id });
  assert.deepEqual([rows, count, total], [[], 0, 0]);
});

test('two pods that had one address after the other are two clients', () => {
  const model = new LiveModel();
  const client = { address: addressOf(1), port: 40_000 };
  const server = { address: '10.96.0.10', port: 53 };
  for (const name of ['first', 'second']) {
    model.advance(model.nowMs === -Infinity ? 1_700_000_000_000 : model.nowMs + 1000);
    model.name(new Map([[client.address, shopPod(name, 'deploy/web')]]));
    const { nowMs: sentMs } = model;
    model.counts.exchange({
      ...{ client, server, hops: [], name: 'a.example.', type: 1, protocol: 'udp' },
      ...{ ending: 'answered', rcode: 0, sentMs, repliedMs: sentMs + 1 },
    });
  }
  const { rows } = new PrivateViews(model, 'no-clients', 'key').view({ view: 'clients' });
  assert.equal(new Set(rows.map(({ id }) => id)).size, 2, JSON.stringify(rows));
  assert.ok(!JSON.stringify(rows).includes(client.address));
});
