/**
 * Views for readers who must not learn everything: without addresses and pod names of clients, or
 * numbers only.
 */
import { Problem } from '../../server/base/problem.ts';
import { Redaction } from '../capture/redaction.ts';
import type { FilterWord } from '../capture/filter.ts';
import type {
  ClientRow,
  ExampleRow,
  FindingRow,
  Listed,
  LookupRow,
  NowView,
  Party,
  ViewName,
  ViewQuery,
  Views,
} from './view.ts';

/** `no-clients`: pseudonyms for addresses of clients, and no pod names. `counts`: no lists at all. */
export const privacyLevels = ['full', 'no-clients', 'counts'] as const;
/** One of them. */
export type PrivacyLevel = (typeof privacyLevels)[number];

/** Filters that would confirm a guess of an address or a pod. */
const revealing: ReadonlySet<FilterWord> = new Set(['ip', 'from-ip', 'to-ip', 'pod', 'from-pod']);

/** Most servers whose addresses stay in texts. */
const SERVERS_MAX = 1000;

const addressText = /(?:\d{1,3}\.){3}\d{1,3}|[\da-f]{0,4}(?::[\da-f]{0,4}){2,7}/gi;

export interface ViewSource {
  view<V extends ViewName>(query: ViewQuery<V>): Views[V];
}

/** The views of a model at a privacy level. */
export class PrivateViews implements ViewSource {
  readonly #source: ViewSource;
  readonly #level: PrivacyLevel;
  readonly #redaction: Redaction;

  /** @param key the same key gives the same pseudonyms in another run */
  constructor(source: ViewSource, level: PrivacyLevel, key: string) {
    this.#source = source;
    this.#level = level;
    this.#redaction = new Redaction(key);
  }

  /** @throws Problem (`usage`) for what the level does not show */
  view<V extends ViewName>(query: ViewQuery<V>): Views[V] {
    if (this.#level === 'full') return this.#source.view(query);
    const asked = query.filters?.find(({ word }) => revealing.has(word));
    if (asked !== undefined) throw hidden(`a filter by ${asked.word}`, this.#level);
    if (query.view === 'clients' && query.id !== undefined)
      throw hidden('a client by its address', this.#level);
    if (this.#level === 'counts') {
      if (query.view !== 'now') throw hidden(`the view ${query.view}`, this.#level);
      return numbersOnly(this.#source.view(query) as NowView) as Views[V];
    }
    return this.#withoutClients(query.view, this.#source.view(query)) as Views[V];
  }

  #withoutClients(name: ViewName, view: Views[ViewName]): Views[ViewName] {
    switch (name) {
      case 'lookups': {
        const lookups = view as Views['lookups'];
        const rows = lookups.rows.map((row): LookupRow => ({
          ...row,
          client: this.#party(row.client),
        }));
        return { ...lookups, rows };
      }
      case 'clients': {
        const clients = view as Views['clients'];
        const rows = clients.rows.map((row): ClientRow => {
          const party = this.#party(row);
          return { ...row, ...party, id: party.address };
        });
        return { ...clients, rows };
      }
      case 'findings': {
        const findings = view as Views['findings'];
        const hide = this.#texts();
        const reasons = (rows: typeof findings.excluded): typeof findings.excluded =>
          rows.map((row) => ({ ...row, reason: hide(row.reason) }));
        return {
          ...findings,
          rows: findings.rows.map((row) => this.#finding(row, hide)),
          excluded: reasons(findings.excluded),
          unknown: reasons(findings.unknown),
        };
      }
      case 'now': {
        const now = view as NowView;
        const hide = this.#texts();
        const changes = now.changes.rows.map((row) => ({ ...row, text: hide(row.text) }));
        const waste = now.waste.workloads.rows.map((row) => ({
          ...row,
          id: hide(row.id),
          workload: hide(row.workload),
        }));
        return {
          ...now,
          findings: now.findings.map((row) => this.#finding(row, hide)),
          changes: { ...now.changes, rows: changes },
          waste: { ...now.waste, workloads: { ...now.waste.workloads, rows: waste } },
        };
      }
      case 'names':
      case 'servers':
        return view;
    }
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
      examples: row.examples.map((example): ExampleRow => ({
        ...example,
        client: this.#party(example.client),
      })),
    };
  }

  /** Hides every address in a text that is not one of a server, and every name of a client's pod. */
  #texts(): (text: string) => string {
    const servers = this.#source.view({ view: 'servers', most: SERVERS_MAX }).rows;
    const kept = new Set(servers.map(({ address }) => address));
    const clients = this.#source.view({ view: 'clients', most: SERVERS_MAX }).rows;
    const pods = clients.filter(({ kind, name }) => kind === 'pod' && name !== '');
    return (text) => {
      let out = text.replace(addressText, (address) =>
        kept.has(address) ? address : this.#redaction.address(address),
      );
      for (const { name, namespace, workload } of pods)
        out = out.replaceAll(name, `${namespace}/${workload}`);
      return out;
    };
  }
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
    waste: { ...now.waste, workloads: noRows },
  };
}
