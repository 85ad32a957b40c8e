/** The six pages, by view name. */
import type { ViewName, Views } from '../../../../tools/watch/view.ts';
import type { AskModel, PageFit, SortKey, TopBody } from './top-page.ts';
import type { GivenFilter } from '../../../../tools/capture/filter.ts';
import { unfilteredText } from '../../live/finding-words.ts';
import { clientsBody } from './clients-page.ts';
import { findingsBody } from './findings-page.ts';
import { lookupsBody } from './lookups-page.ts';
import { namesBody } from './names-page.ts';
import { nowBody } from './now-page.ts';
import { serversBody } from './servers-page.ts';

export interface PageQuery {
  readonly filters: readonly GivenFilter[];
  readonly sort: SortKey | null;
  readonly reversed: boolean;
  readonly most: number;
  /** Null: the whole window. */
  readonly lastMs: number | null;
}

export const pageTitles: Readonly<Record<ViewName, string>> = {
  now: 'Now',
  lookups: 'Lookups',
  clients: 'Clients',
  names: 'Names',
  servers: 'Servers',
  findings: 'Findings',
};

export type SeenView = Views[ViewName];

export function seePage(ask: AskModel, view: ViewName, query: PageQuery): SeenView {
  const { filters, sort, reversed, most, lastMs } = query;
  return ask({
    view,
    most,
    ...(filters.length > 0 && { filters }),
    ...(sort !== null && { sort }),
    ...(reversed && { reversed }),
    ...(lastMs !== null && { lastMs }),
  });
}

/** The end of a page's line about what it omits: `, filters do not apply here`. */
export function unfiltered(view: ViewName, filters: readonly GivenFilter[]): string {
  const text = unfilteredText(view, filters.length > 0);
  return text === '' ? '' : `, ${text}`;
}

export function fitPage(seen: SeenView, fit: PageFit): TopBody {
  switch (seen.view) {
    case 'now':
      return nowBody(seen, fit);
    case 'lookups':
      return lookupsBody(seen, fit);
    case 'clients':
      return clientsBody(seen, fit);
    case 'names':
      return namesBody(seen, fit);
    case 'servers':
      return serversBody(seen, fit);
    case 'findings':
      return findingsBody(seen, fit);
  }
}
