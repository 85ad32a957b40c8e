import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MapEdge, MapNode } from '../../tools/watch/map-shape.ts';
import { layOut, NODE_HEIGHT, NODE_WIDTH, type MapLayout } from './map-layout.ts';

function node(id: string, role: MapNode['role'] = 'server'): MapNode {
  return { id, role, address: id, name: '', clients: 0, more: 0, lookups: 1 };
}

function edge(from: string, to: string): MapEdge {
  return {
    ...{ id: `${from} ${to}`, from, to, lookups: 1, queries: 1, rate: 1, lost: 0, failed: 0 },
    latency: { p50: 1, p99: 1 },
    filter: '',
  };
}

/** Lays out a graph that is given by its edges: `a>b b>c`. */
function laidOut(edges: string, room = 0): MapLayout {
  const pairs = edges.split(' ').map((pair) => pair.split('>') as [string, string]);
  const nodes = [...new Set(pairs.flat())].map((id) => node(id));
  return layOut(
    nodes,
    pairs.map(([from, to]) => edge(from, to)),
    room,
  );
}

/** The nodes in each column, from left to right. */
function columnsIn({ nodes }: MapLayout): readonly string[] {
  const columns = Map.groupBy(nodes, ({ x }) => x);
  return [...columns]
    .toSorted(([one], [other]) => one - other)
    .map(([, placed]) => placed.map(({ node: { id } }) => id).join(' '));
}

describe('the layout of the map', () => {
  test('leads from clients through the service and its pods to upstreams', () => {
    const layout = laidOut('a>svc b>svc svc>p1 svc>p2 p1>up p2>up');
    assert.deepEqual(columnsIn(layout), ['a b', 'svc', 'p1 p2', 'up']);
  });

  test('a pod that is also queried directly stays behind the service', () => {
    assert.deepEqual(columnsIn(laidOut('a>svc b>pod svc>pod')), ['a b', 'svc', 'pod']);
  });

  test('servers that query each other or themselves are placed once', () => {
    assert.deepEqual(columnsIn(laidOut('a>svc svc>p p>svc')), ['a', 'svc', 'p']);
    const ring = laidOut('x>y y>x x>x');
    assert.equal(ring.nodes.length, 2);
    assert.equal(ring.edges.length, 2);
  });

  test('nodes do not overlap, and all are within the drawing', () => {
    const clients = Array.from({ length: 13 }, (_, at) => `c${at}>svc`).join(' ');
    const { nodes, width, height } = laidOut(`${clients} svc>p1 svc>p2 svc>p3 p1>up c3>up`, 1400);
    for (const [at, one] of nodes.entries()) {
      assert.ok(one.x >= 0 && one.x + NODE_WIDTH <= width);
      assert.ok(one.y >= 0 && one.y + NODE_HEIGHT <= height);
      for (const other of nodes.slice(at + 1))
        assert.ok(one.x !== other.x || Math.abs(one.y - other.y) >= NODE_HEIGHT);
    }
  });

  test('a wide page moves columns apart, without exceeding its width', () => {
    const [narrow, wide] = [laidOut('a>svc svc>p', 300), laidOut('a>svc svc>p', 1300)];
    assert.ok(narrow.width < wide.width);
    assert.ok(wide.width <= 1300);
  });

  test('numbers are at an end without other curves, or only in the table', () => {
    const { edges } = laidOut('a>svc b>svc svc>p svc>q p>u p>v q>u q>v');
    const anchors = new Map(edges.map(({ edge: { id }, label }) => [id, label?.anchor ?? null]));
    assert.equal(anchors.get('a svc'), 'start');
    assert.equal(anchors.get('svc p'), 'end');
    assert.equal(anchors.get('p u'), null);
  });
});
