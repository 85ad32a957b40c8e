/** Parses and validates cache reports, because any program may be listening at that address. */
import { isObject } from '../../../server/base/json-object.ts';
import type { CacheReport } from '../../../server/plugins/cache/control.ts';
import { hasFields, isListOf, type FieldKind } from '../field-kinds.ts';

/** The reports in a reply, or null if it is not a reply to `cache`. */
export function readReports(answer: unknown): readonly CacheReport[] | null {
  if (!isObject(answer)) return null;
  const { results } = answer;
  const fits = isListOf(
    results,
    (report) => hasFields(report, reportKeys) && isTold(report['told']),
  );
  return fits ? (results as unknown as readonly CacheReport[]) : null;
}

const reportKeys: Readonly<Record<string, FieldKind>> = {
  servers: 'strings',
  zones: 'strings',
  view: 'string',
  workers: 'number',
};
const toldKeys: Readonly<Record<string, FieldKind>> = {
  worker: 'number',
  found: 'number',
  size: 'number',
};
const entryKeys: Readonly<Record<string, FieldKind>> = {
  name: 'string',
  type: 'string',
  class: 'string',
  rcode: 'string',
  half: 'string',
  from: 'string',
  dnssecOk: 'boolean',
  checkingDisabled: 'boolean',
  ttl: 'number',
  storedTtl: 'number',
  hits: 'number',
};

function isTold(told: unknown): boolean {
  return isListOf(
    told,
    (one) =>
      hasFields(one, toldKeys) && isListOf(one['entries'], (entry) => hasFields(entry, entryKeys)),
  );
}
