/**
 * The Map page: clients, servers and upstreams, with the rate, loss and reply time for each edge. Selecting an edge
 * shows its lookups.
 */
import { html, nothing, svg, type SVGTemplateResult, type TemplateResult } from 'lit-html';
import { signal, type Signal } from '@preact/signals-core';
import type { MapEdge, MapNode, MapView } from '../../tools/watch/map-shape.ts';
import { printLatency, printNumber, printPart, printRate } from '../cli/live/figures.ts';
import { printHash } from '../web/hash-state.ts';
import { ofCluster } from './page-state.ts';
import { table } from '../web/table.ts';
import { layOut, NODE_HEIGHT, NODE_WIDTH, type PlacedEdge, type PlacedNode } from './map-layout.ts';
import { counted } from './now-figures.ts';

const roles: Readonly<Record<MapNode['role'], string>> = {
  clients: 'clients',
  server: 'server',
  behind: 'behind a service',
  upstream: 'upstream',
};
/** Maximum number of characters in a node label. */
const LABEL_MAX = 24;

const room: Signal<number> = signal(0);
const observer = new ResizeObserver(([entry]) => (room.value = entry!.contentRect.width));
let observed: Element | undefined;

export function mapPage(view: MapView): TemplateResult {
  const { nodes, edges, lookups, total, serversLeftOut, lostByKernel } = view;
  const remarks = [
    `${counted(lookups, 'lookup')} counted${lookups < total ? ` of ${printNumber(total)}` : ''}`,
    `${printNumber(lostByKernel)} packets lost by the kernel`,
    ...(serversLeftOut > 0 ? [`${counted(serversLeftOut, 'server')} not drawn (see Servers)`] : []),
  ];
  const named = new Map(nodes.map((node) => [node.id, node]));
  return html`<p class="quiet">${remarks.join(' · ')}</p>
    ${
      edges.length === 0
        ? html`<p class="empty">No lookups yet. Traffic appears here as it happens.</p>`
        : html`${drawing(view)}
            <h2>Edges of the map</h2>
            ${edgeTable(edges, named)}`
    }`;
}

function drawing({ nodes, edges }: MapView): TemplateResult {
  const scale = scaleOfText();
  const { width, height, nodes: places, edges: curves } = layOut(nodes, edges, room.value / scale);
  const most = Math.max(...edges.map(({ queries }) => queries));
  const named = new Map(nodes.map((node) => [node.id, node]));
  queueMicrotask(watchRoom);
  return html`<div class="map" role="region" tabindex="0" aria-label="Map of clients and servers">
    <svg
      width=${width * scale}
      height=${height * scale}
      viewBox=${`0 0 ${width} ${height}`}
      role="group"
      aria-label="Clients, servers and upstreams. The table below has the same numbers."
    >
      ${curves.map((curve) => drawnEdge(curve, most, named))} ${curves.map(drawnNumbers)}
      ${places.map(drawnNode)}
    </svg>
  </div>`;
}

/** Scales the drawing with the page's text size, which may be larger because of the screen or the user's settings. */
function scaleOfText(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}

function watchRoom(): void {
  const found = document.querySelector('.map') ?? undefined;
  if (found === observed) return;
  if (observed !== undefined) observer.unobserve(observed);
  observed = found;
  if (found !== undefined) observer.observe(found);
}

function drawnEdge(
  { edge, path }: PlacedEdge,
  most: number,
  named: ReadonlyMap<string, MapNode>,
): SVGTemplateResult {
  const { lost, failed, queries, filter } = edge;
  const tone = lost > 0 ? 'error' : failed > 0 ? 'warning' : 'plain';
  const width = 1.5 + 4.5 * Math.sqrt(queries / most);
  const body = svg`<path class="reach" d=${path} />
    <path class="curve" d=${path} stroke-width=${width.toFixed(1)} />`;
  const words = `${nameOf(named.get(edge.from)!)} to ${nameOf(named.get(edge.to)!)}: ${counted(edge.lookups, 'lookup')}, ${edgeText(edge)}, ${lossText(edge)}`;
  return filter === ''
    ? svg`<g class=${`edge ${tone}`} role="img" aria-label=${words}><title>${words}</title>${body}</g>`
    : svg`<a class=${`edge ${tone}`} href=${lookupsHash(filter)} aria-label=${words}
        ><title>${words}</title>${body}</a>`;
}

/** An edge's numbers, drawn on top of all curves. They are included in the edge's accessible name. */
function drawnNumbers({ edge, label }: PlacedEdge): SVGTemplateResult | typeof nothing {
  if (label === null) return nothing;
  return svg`<text class="numbers" x=${label.x} y=${label.y} text-anchor=${label.anchor} aria-hidden="true"
    >${edgeText(edge)}${
      edge.lost > 0 ? svg`<tspan class="bad"> ${lossText(edge)}</tspan>` : nothing
    }</text>`;
}

function edgeText({ rate, latency }: MapEdge): string {
  return `${printRate(rate)} · ${printLatency(latency.p50)}`;
}

function lossText({ lost, queries }: MapEdge): string {
  return `${printPart(lost, queries)} lost`;
}

function drawnNode({ node, x, y }: PlacedNode): SVGTemplateResult {
  const name = nameOf(node);
  const note = noteOf(node);
  return svg`<g class=${`node ${node.role}`} transform=${`translate(${x} ${y})`}>
    <title>${`${name}: ${roles[node.role]}, ${counted(node.lookups, 'lookup')}`}</title>
    <rect width=${NODE_WIDTH} height=${NODE_HEIGHT} rx="6" />
    <rect class="tag" width="4" height=${NODE_HEIGHT - 16} x="8" y="8" rx="2" />
    <text class="name" x="20" y="19">${shortened(name)}</text>
    <text class="note" x="20" y="34">${note}</text>
    <text class="note" x=${NODE_WIDTH - 10} y="34" text-anchor="end">${printNumber(node.lookups)}</text>
  </g>`;
}

/** A name's end is more distinctive than its beginning. */
function shortened(name: string): string {
  return name.length <= LABEL_MAX ? name : `…${name.slice(1 - LABEL_MAX)}`;
}

function nameOf({ name, address, more }: MapNode): string {
  return more > 0 ? `${more} more` : name === '' ? address : name;
}

function noteOf({ role, clients, name, address }: MapNode): string {
  if (name !== '' && address !== '') return address;
  return role === 'clients' ? counted(clients, 'client') : roles[role];
}

function lookupsHash(filter: string): string {
  return printHash({ page: 'lookups', parameters: new Map(ofCluster({ filter })) });
}

function edgeTable(edges: readonly MapEdge[], named: ReadonlyMap<string, MapNode>): TemplateResult {
  return table<MapEdge>(
    'Edges of the map',
    [
      { head: 'From', code: true, cell: ({ from }) => nameOf(named.get(from)!) },
      { head: 'To', code: true, cell: ({ to }) => nameOf(named.get(to)!) },
      {
        head: 'Lookups',
        numeric: true,
        cell: ({ lookups, filter, from, to }) =>
          filter === ''
            ? printNumber(lookups)
            : html`<a
                class="link"
                href=${lookupsHash(filter)}
                aria-label=${`${lookups} lookups from ${nameOf(named.get(from)!)} to ${nameOf(named.get(to)!)}`}
                >${printNumber(lookups)}</a
              >`,
      },
      { head: 'Queries', numeric: true, cell: ({ queries }) => printNumber(queries) },
      { head: 'A second', numeric: true, cell: ({ rate }) => printRate(rate) },
      { head: 'Lost', numeric: true, cell: ({ lost, queries }) => printPart(lost, queries) },
      { head: 'Errors', numeric: true, cell: ({ failed }) => printNumber(failed) },
      { head: 'Median', numeric: true, cell: ({ latency }) => printLatency(latency.p50) },
      { head: 'p99', numeric: true, cell: ({ latency }) => printLatency(latency.p99) },
    ],
    edges,
    ({ lost, failed }) => (lost > 0 ? 'error' : failed > 0 ? 'warning' : ''),
  );
}
