/** Arranges the map's nodes in columns from clients to upstreams, and computes the curves between them. */
import type { MapEdge, MapNode } from '../../tools/watch/map-shape.ts';

export const NODE_WIDTH = 204;
export const NODE_HEIGHT = 44;
const ROW_GAP = 14;
/** Leaves room for the numbers on an edge. */
const COLUMN_GAP = 172;
/** Longer curves are not easier to follow. */
const SPARE_MAX = 900;
/** Column limit. Longer chains of servers, and cycles, end in the last column. */
const COLUMNS_MAX = 5;
/** Margin for focus rings. */
const MARGIN = 4;

export interface PlacedNode {
  readonly node: MapNode;
  readonly x: number;
  readonly y: number;
}

export interface PlacedEdge {
  readonly edge: MapEdge;
  /** The `d` attribute of the path. */
  readonly path: string;
  /** The place for its numbers, or null if other edges are in the way, in which case only the table shows them. */
  readonly label: {
    readonly x: number;
    readonly y: number;
    readonly anchor: 'start' | 'end';
  } | null;
}

export interface MapLayout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

/** @param room available width, although a map with many columns is wider */
export function layOut(
  nodes: readonly MapNode[],
  edges: readonly MapEdge[],
  room: number,
): MapLayout {
  const drawn = edges.filter(({ from, to }) => from !== to);
  const columnOf = columnsOf(nodes, drawn);
  const count = Math.max(...columnOf.values(), 0) + 1;
  const columns = Array.from({ length: count }, (_, column) =>
    nodes.filter(({ id }) => columnOf.get(id) === column),
  );
  const least = 2 * MARGIN + count * NODE_WIDTH + (count - 1) * COLUMN_GAP;
  const lefts = leftsOf(count, Math.min(SPARE_MAX, Math.max(0, room - least)));
  const rows = Math.max(...columns.map(({ length }) => length), 1);
  const height = rows * (NODE_HEIGHT + ROW_GAP) - ROW_GAP + 2 * MARGIN;
  const places = new Map<string, PlacedNode>();
  columns.forEach((column, index) => {
    const x = lefts[index]!;
    const step = NODE_HEIGHT + ROW_GAP;
    const top = (height - (column.length * step - ROW_GAP)) / 2;
    const ordered = index === 0 ? column : byAskers(column, drawn, places);
    ordered.forEach((node, row) => places.set(node.id, { node, x, y: top + row * step }));
  });
  return {
    width: lefts.at(-1)! + NODE_WIDTH + MARGIN,
    height,
    nodes: [...places.values()],
    edges: drawn.map((edge) => placed(edge, drawn, places)),
  };
}

/** Left edges of the columns. The first gap has the most curves, so it gets half of the spare width. */
function leftsOf(count: number, spare: number): readonly number[] {
  const gaps = count - 1;
  const shares = gaps < 2 ? [spare] : [spare / 2, ...Array(gaps - 1).fill(spare / 2 / (gaps - 1))];
  const lefts = [MARGIN];
  for (const share of shares.slice(0, gaps))
    lefts.push(lefts.at(-1)! + NODE_WIDTH + COLUMN_GAP + Math.floor(share as number));
  return lefts;
}

/** Places each node to the right of all nodes leading to it, ignoring back edges. */
function columnsOf(
  nodes: readonly MapNode[],
  edges: readonly MapEdge[],
): ReadonlyMap<string, number> {
  const distance = distances(nodes, edges);
  const pairs = new Set(edges.map(({ from, to }) => `${from} ${to}`));
  const forward = edges.filter(({ from, to }) => {
    const ahead = distance.get(to)! - distance.get(from)!;
    return ahead > 0 || (ahead === 0 && (from < to || !pairs.has(`${to} ${from}`)));
  });
  const columns = new Map(nodes.map(({ id }) => [id, 0]));
  for (let round = 1; round < COLUMNS_MAX; round++)
    for (const { from, to } of forward) {
      const least = columns.get(from)! + 1;
      if (least > columns.get(to)! && least < COLUMNS_MAX) columns.set(to, least);
    }
  return columns;
}

/** Counts edges from the nearest node that has no incoming edges. */
function distances(
  nodes: readonly MapNode[],
  edges: readonly MapEdge[],
): ReadonlyMap<string, number> {
  const asked = new Set(edges.map(({ to }) => to));
  const found = new Map(nodes.filter(({ id }) => !asked.has(id)).map(({ id }) => [id, 0]));
  for (const [id, far] of found)
    for (const { from, to } of edges) if (from === id && !found.has(to)) found.set(to, far + 1);
  // A cycle that no other node leads to.
  for (const { id } of nodes) if (!found.has(id)) found.set(id, 0);
  return found;
}

/** Reduces crossings by ordering nodes by the mean position of their clients. */
function byAskers(
  column: readonly MapNode[],
  edges: readonly MapEdge[],
  places: ReadonlyMap<string, PlacedNode>,
): readonly MapNode[] {
  const middle = new Map(
    column.map(({ id }) => {
      const askers = edges.flatMap(({ from, to }) => (to === id ? (places.get(from) ?? []) : []));
      return [id, askers.reduce((sum, { y }) => sum + y, 0) / Math.max(1, askers.length)];
    }),
  );
  return column.toSorted((one, other) => middle.get(one.id)! - middle.get(other.id)!);
}

function placed(
  edge: MapEdge,
  edges: readonly MapEdge[],
  places: ReadonlyMap<string, PlacedNode>,
): PlacedEdge {
  const [from, to] = [places.get(edge.from)!, places.get(edge.to)!];
  const out = edges.filter((other) => other.from === edge.from);
  const into = edges.filter((other) => other.to === edge.to);
  const start = { x: from.x + NODE_WIDTH, y: from.y + NODE_HEIGHT / 2 };
  const end = { x: to.x, y: to.y + NODE_HEIGHT / 2 };
  if (to.x <= from.x) {
    // If servers query each other, the curve passes below both.
    const below = Math.max(from.y, to.y) + NODE_HEIGHT + ROW_GAP;
    return {
      edge,
      path: `M${start.x} ${start.y}C${start.x + 60} ${below} ${end.x - 60} ${below} ${end.x} ${end.y}`,
      label: null,
    };
  }
  // The numbers are at the end that no other curve uses, so the curve bends at the other end.
  const at: 'start' | 'end' | null = out.length === 1 ? 'start' : into.length === 1 ? 'end' : null;
  const share = at === 'start' ? 0.7 : at === 'end' ? 0.3 : 0.5;
  const bend = start.x + share * (end.x - start.x);
  const path = `M${start.x} ${start.y}C${bend} ${start.y} ${bend} ${end.y} ${end.x} ${end.y}`;
  if (at === null) return { edge, path, label: null };
  const rises = end.y < start.y;
  const label: PlacedEdge['label'] =
    at === 'start'
      ? { x: start.x + 8, y: start.y + (rises ? 15 : -6), anchor: at }
      : { x: end.x - 8, y: end.y + (rises ? -6 : 15), anchor: at };
  return { edge, path, label };
}
