/**
 * Reads the cache reports of servers. It checks them, because any program may listen at the
 * address.
 */
import { isObject, type JsonObject } from '../../../server/base/json-object.ts';
import type { CacheReport } from '../../../server/plugins/cache/control.ts';

/** The reports of an answer; null: the answer is not one of `cache`. */
export function readReports(answer: unknown): readonly CacheReport[] | null {
  if (!isObject(answer)) return null;
  const { results } = answer;
  const fits = isListOf(results, (report) => has(report, reportKeys) && isTold(report['told']));
  return fits ? (results as unknown as readonly CacheReport[]) : null;
}

type FieldKind = 'string' | 'number' | 'boolean' | 'strings';

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
    (one) => has(one, toldKeys) && isListOf(one['entries'], (entry) => has(entry, entryKeys)),
  );
}

function isListOf(value: unknown, fits: (one: JsonObject) => boolean): boolean {
  return Array.isArray(value) && value.every((one) => isObject(one) && fits(one));
}

function has(object: JsonObject, kinds: Readonly<Record<string, FieldKind>>): boolean {
  return Object.entries(kinds).every(([key, kind]) => isKind(object[key], kind));
}

function isKind(value: unknown, kind: FieldKind): boolean {
  if (kind !== 'strings') return typeof value === kind;
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
