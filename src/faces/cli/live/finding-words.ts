/** Words about findings that all live views share. */
import type { FindingRow, ViewName } from '../../../tools/watch/view.ts';

export const findingStates: Readonly<Record<FindingRow['state'], string>> = {
  began: 'new',
  continues: 'ongoing',
  ended: 'ended',
};

/** Names the part of a view to which filters do not apply, because findings follow from all the traffic. */
export function unfilteredText(view: ViewName | 'map', isFiltered: boolean): string {
  if (!isFiltered) return '';
  if (view === 'findings') return 'filters do not apply here';
  return view === 'now' ? 'filters do not apply to findings and changes' : '';
}
