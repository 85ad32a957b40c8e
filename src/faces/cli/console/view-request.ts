/** Parses a browser's request into a query for the live model. */
import type { GivenFilter } from '../../../tools/capture/filter.ts';
import { parseFilterLine } from '../../../tools/capture/filter-line.ts';
import type { MapQuery } from '../../../tools/watch/map-shape.ts';
import type { ReloadsQuery } from '../../../tools/watch/reload-shape.ts';
import { sortKeys, viewNames, type ViewName, type ViewQuery } from '../../../tools/watch/view.ts';
import { whyUseless } from '../live-filters.ts';
import { usage } from '../option-values.ts';

/** Limit of rows in a reply. */
const ROWS_MAX = 1000;

/**
 * Parses a view request such as `now?filter=namespace=shop`.
 * @param hasOwners true if the pods behind addresses are known
 * @throws Problem (`usage`)
 */
export function parseViewRequest(
  key: string,
  hasOwners: boolean,
): ViewQuery | MapQuery | ReloadsQuery {
  const mark = key.indexOf('?');
  const name = mark < 0 ? key : key.slice(0, mark);
  const parameters = new URLSearchParams(mark < 0 ? '' : key.slice(mark + 1));
  const filters = filtersIn(parameters, hasOwners);
  if (name === 'map') return { view: 'map', filters };
  if (name === 'reloads') return { view: 'reloads' };
  const view = viewNames.find((each) => each === name);
  if (view === undefined)
    throw usage(
      `there is no view ${name}`,
      `Views: ${[...viewNames, 'map', 'reloads'].join(', ')}`,
    );
  const sort = sortOf(view, parameters.get('sort'));
  const id = parameters.get('id');
  return {
    view,
    ...(filters.length > 0 && { filters }),
    ...(sort !== null && { sort }),
    reversed: parameters.get('reversed') === '1',
    most: 200,
    ...numbered(parameters, 'rows', 1, ROWS_MAX, 'most'),
    ...numbered(parameters, 'skip', 0, 1e9, 'skip'),
    ...numbered(parameters, 'lastMs', 1000, 86_400_000, 'lastMs'),
    ...numbered(parameters, 'before', 0, Number.MAX_SAFE_INTEGER, 'before'),
    ...(id !== null && { id: view === 'lookups' ? Number(id) : id }),
  } as ViewQuery;
}

/**
 * @param hasOwners true if the pods behind addresses are known
 * @throws Problem (`usage`)
 */
export function filtersIn(parameters: URLSearchParams, hasOwners: boolean): readonly GivenFilter[] {
  const line = parameters.get('filter') ?? '';
  if (line.trim() === '') return [];
  const filters = parseFilterLine(line);
  const why = whyUseless(filters, hasOwners);
  if (why !== null) throw usage(why);
  return filters;
}

function sortOf(view: ViewName, given: string | null): string | null {
  if (given === null || given === '') return null;
  const keys: readonly string[] = sortKeys[view];
  if (!keys.includes(given))
    throw usage(`the ${view} view cannot be sorted by ${given}`, `Columns: ${keys.join(', ')}`);
  return given;
}

/** The whole number in a parameter, as a field of the query. Empty if it is not given. */
function numbered<Name extends string>(
  parameters: URLSearchParams,
  name: string,
  least: number,
  most: number,
  field: Name,
): { readonly [Key in Name]?: number } {
  const given = parameters.get(name);
  if (given === null) return {};
  const value = Number(given);
  if (!Number.isInteger(value) || value < least || value > most)
    throw usage(`${name} takes a whole number from ${least} to ${most}, not "${given}"`);
  return { [field]: value } as { readonly [Key in Name]?: number };
}
