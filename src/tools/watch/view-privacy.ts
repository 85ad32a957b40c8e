/**
 * Restricted views for readers who may not see everything. They have no client addresses and pod names, or only
 * numbers.
 */
import type { AddressOwners } from '../pods/address-owners.ts';
import { Problem } from '../../server/base/problem.ts';
import { Redaction } from '../capture/redaction.ts';
import type { FilterWord, GivenFilter } from '../capture/filter.ts';
import type { MapQuery, MapView } from './map-shape.ts';
import type { ChangedAnswer, ReloadMark, ReloadsView } from './reload-shape.ts';
import type { TraceInputView } from './trace-input.ts';
import type {
  ChangeRow,
  FindingRow,
  FindingsView,
  Listed,
  NowView,
  Party,
  ViewName,
  ViewQuery,
  Views,
} from './view.ts';

/**
 * With `no-clients`, client addresses become pseudonyms and pod names are hidden. With `counts`, there are no lists at
 * all.
 */
export const privacyLevels = ['full', 'no-clients', 'counts'] as const;
export type PrivacyLevel = (typeof privacyLevels)[number];

/** Filters that could confirm a guessed address or pod. */
const revealing: ReadonlySet<FilterWord> = new Set(['ip', 'from-ip', 'to-ip', 'pod', 'from-pod']);

/** The maximum number of servers whose addresses remain in texts. */
const SERVERS_MAX = 1000;

const addressText = /(?:\d{1,3}\.){3}\d{1,3}|[\da-f]{0,4}(?::[\da-f]{0,4}){2,7}/gi;

/** A pod's name in a text, with or without its namespace. */
const podText = /[a-z\d](?:[a-z\d.-]*[a-z\d])?(?:\/[a-z\d](?:[a-z\d.-]*[a-z\d])?)?/g;

export interface ViewSource {
  view<V extends ViewName>(query: ViewQuery<V>): Views[V];
  map(query: MapQuery): MapView;
  reloads(): ReloadsView;
  traceInput(client: string, name: string): TraceInputView | null;
}

/** Unrestricted views, and what their texts may name. */
export interface OpenViews extends ViewSource {
  readonly parties: { readonly owners: AddressOwners };
}

export class PrivateViews implements ViewSource {
  readonly #source: OpenViews;
  readonly #level: PrivacyLevel;
  readonly #redaction: Redaction;

  /** @param key produces the same pseudonyms in another run */
  constructor(source: OpenViews, level: PrivacyLevel, key: string) {
    this.#source = source;
    this.#level = level;
    this.#redaction = new Redaction(key);
  }

  /** @throws Problem (`usage`) for anything the level hides */
  view<V extends ViewName>(query: ViewQuery<V>): Views[V] {
    if (this.#level === 'full') return this.#source.view(query);
    this.#refuseGuesses(query.filters ?? []);
    if (query.view === 'clients' && query.id !== undefined)
      throw hidden('a client by its address', this.#level);
    if (this.#level === 'counts') {
      if (query.view !== 'now') throw hidden(`the view ${query.view}`, this.#level);
      return numbersOnly(this.#source.view(query) as NowView) as Views[V];
    }
    return this.#withoutClients(query as ViewQuery) as Views[V];
  }

  /** @throws Problem (`usage`) for anything the level hides */
  map(query: MapQuery): MapView {
    if (this.#level === 'full') return this.#source.map(query);
    this.#refuseGuesses(query.filters ?? []);
    if (this.#level === 'counts') throw hidden('the map', this.#level);
    const map = this.#source.map(query);
    const ids = new Map<string, string>();
    const nodes = map.nodes.map((node) => {
      if (node.role !== 'clients' || node.address === '') return node;
      const address = this.#redaction.address(node.address);
      const id = `clients ${address}`;
      ids.set(node.id, id);
      return { ...node, id, address, name: '' };
    });
    const edges = map.edges.map((edge) => {
      const [from, to] = [ids.get(edge.from) ?? edge.from, ids.get(edge.to) ?? edge.to];
      // A filter by address would be rejected.
      const isRevealing = /(?:^| )(?:from-ip|to-ip|ip)=/.test(edge.filter);
      return { ...edge, id: `${from} ${to}`, from, to, filter: isRevealing ? '' : edge.filter };
    });
    return { ...map, nodes, edges };
  }

  reloads(): ReloadsView {
    const view = this.#source.reloads();
    if (this.#level === 'full') return view;
    if (this.#level === 'counts')
      return {
        ...view,
        rows: view.rows.map((row) => ({ ...markOnly(row), diff: '', before: [], after: [] })),
      };
    const hide = this.#texts();
    return { ...view, rows: view.rows.map((row) => ({ ...row, answers: answersOf(row, hide) })) };
  }

  /** @throws Problem (`usage`), because it would reveal a client's search path and resolver */
  traceInput(client: string, name: string): TraceInputView | null {
    if (this.#level === 'full') return this.#source.traceInput(client, name);
    throw hidden('a client by its address', this.#level);
  }

  #refuseGuesses(filters: readonly GivenFilter[]): void {
    const asked = filters.find(({ word }) => revealing.has(word));
    if (asked !== undefined) throw hidden(`a filter by ${asked.word}`, this.#level);
  }

  #withoutClients(query: ViewQuery): Views[ViewName] {
    const view = this.#source.view(query);
    switch (view.view) {
      case 'lookups':
        return {
          ...view,
          rows: view.rows.map((row) => {
            const client = this.#party(row.client);
            const clientId = row.clientId.replace(row.client.address, client.address);
            return { ...row, client, clientId };
          }),
        };
      case 'clients':
        return {
          ...view,
          rows: view.rows.map((row) => {
            const party = this.#party(row);
            return { ...row, ...party, id: row.id.replace(row.address, party.address) };
          }),
        };
      case 'findings':
        return this.#findings(query as ViewQuery<'findings'>);
      case 'now':
        return this.#now(view);
      case 'names':
      case 'servers':
        return view;
    }
  }

  /** An ID that the source knows would confirm a guessed address, so only those that are shown select a finding. */
  #findings({ id, ...query }: ViewQuery<'findings'>): FindingsView {
    const view = this.#source.view(id === undefined ? query : { view: 'findings', most: Infinity });
    const hide = this.#texts();
    const reasons = (rows: FindingsView['excluded']): FindingsView['excluded'] =>
      rows.map((row) => ({ ...row, reason: hide(row.reason) }));
    const all = view.rows.map((row) => this.#finding(row, hide));
    const rows = all.filter((row) => id === undefined || row.id === id);
    return {
      ...view,
      rows,
      ...(id !== undefined && { shown: rows.length, total: rows.length }),
      excluded: reasons(view.excluded),
      unknown: reasons(view.unknown),
    };
  }

  #now(now: NowView): NowView {
    const hide = this.#texts();
    const changes = now.changes.rows.map(({ about, ...row }): ChangeRow => {
      const id = typeof about?.id === 'string' ? hide(about.id) : about?.id;
      return { ...row, text: hide(row.text), about: id === undefined ? null : { ...about!, id } };
    });
    const waste = now.waste.workloads.rows.map((row) => ({
      ...row,
      id: hide(row.id),
      workload: hide(row.workload),
    }));
    return {
      ...now,
      findings: now.findings.map((row) => this.#finding(row, hide)),
      changes: { ...now.changes, rows: changes },
      reloads: now.reloads.map((row) => ({ ...row, answers: answersOf(row, hide) })),
      waste: { ...now.waste, workloads: { ...now.waste.workloads, rows: waste } },
    };
  }

  #party(party: Party): Party {
    const address = this.#redaction.address(party.address);
    return { ...party, address, name: '', node: '' };
  }

  #finding(row: FindingRow, hide: (text: string) => string): FindingRow {
    const all = (texts: readonly string[]): readonly string[] => texts.map(hide);
    return {
      ...row,
      id: hide(row.id),
      subject: hide(row.subject),
      seen: all(row.seen),
      why: hide(row.why),
      fix: all(row.fix),
      prove: hide(row.prove),
      disproved: hide(row.disproved),
      places: all(row.places),
      who: {
        ...row.who,
        affected: all(row.who.affected),
        groups: row.who.groups.map((group) => ({ ...group, name: hide(group.name) })),
      },
      examples: row.examples.map((each) => ({ ...each, client: this.#party(each.client) })),
    };
  }

  /** Hides all addresses except those of servers, and the names of all other pods. */
  #texts(): (text: string) => string {
    const servers = this.#source.view({ view: 'servers', most: SERVERS_MAX }).rows;
    const kept = new Set(servers.map(({ address }) => address));
    const pods = new Map<string, string>();
    for (const [address, { kind, namespace, name, workload }] of this.#source.parties.owners) {
      if (kind !== 'pod' || name === '' || kept.has(address)) continue;
      const shown = workload === '' ? 'pod' : workload;
      pods.set(`${namespace}/${name}`, `${namespace}/${shown}`).set(name, shown);
    }
    const part = (name: string): string => pods.get(name) ?? name;
    return (text) =>
      text
        .replace(addressText, (address) =>
          kept.has(address) ? address : this.#redaction.address(address),
        )
        .replace(podText, (name) => pods.get(name) ?? name.split('/').map(part).join('/'));
  }
}

/** Answers may be client addresses, for example those of a headless service. */
function answersOf(
  { answers }: ReloadMark,
  hide: (text: string) => string,
): readonly ChangedAnswer[] {
  const outcome = (of: ChangedAnswer['before']): ChangedAnswer['before'] => ({
    ...of,
    records: of.records.map(hide),
  });
  return answers.map((answer) => ({
    ...answer,
    before: outcome(answer.before),
    after: outcome(answer.after),
  }));
}

function markOnly<Row extends ReloadMark>(row: Row): Row {
  return { ...row, servers: row.servers.map(() => ''), answers: [] };
}

function hidden(what: string, level: PrivacyLevel): Problem {
  return new Problem({
    code: 'usage',
    text: `${what} is hidden`,
    hint: `This page was started with --privacy ${level}.`,
  });
}

const noRows: Listed<never> = {
  rows: [],
  shown: 0,
  total: 0,
  leftOut: 0,
  lostByKernel: 0,
  sampledShare: 1,
  error: 0,
};

function numbersOnly(now: NowView): NowView {
  return {
    ...now,
    inputs: now.inputs.map((input) => ({ ...input, name: '', why: '' })),
    remarks: [],
    findings: now.findings.map((row) => ({
      ...row,
      id: row.code,
      subject: '',
      seen: [],
      why: '',
      fix: [],
      prove: '',
      disproved: '',
      places: [],
      who: { ...row.who, groups: [], affected: [] },
      examples: [],
    })),
    changes: noRows,
    reloads: now.reloads.map(markOnly),
    waste: { ...now.waste, workloads: noRows },
  };
}
