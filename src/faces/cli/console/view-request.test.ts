import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../server/base/problem.ts';
import { parseViewRequest } from './view-request.ts';

test('an address is parsed as a query of the live model', () => {
  const filter = encodeURIComponent('name=*.example.com not rcode=NXDOMAIN');
  assert.deepEqual(
    parseViewRequest(`lookups?filter=${filter}&sort=took&reversed=1&rows=50&id=7`, false),
    {
      view: 'lookups',
      filters: [
        { word: 'name', value: '*.example.com', negated: false },
        { word: 'rcode', value: 'NXDOMAIN', negated: true },
      ],
      sort: 'took',
      reversed: true,
      most: 50,
      id: 7,
    },
  );
  assert.deepEqual(parseViewRequest('now?', false), { view: 'now', reversed: false, most: 200 });
});

test('an invalid request is rejected with the valid values', () => {
  const refused = (key: string, text: RegExp): void =>
    assert.throws(
      () => parseViewRequest(key, false),
      (error: unknown) =>
        error instanceof Problem && error.code === 'usage' && text.test(error.print()),
    );
  refused('nothing?', /there is no view nothing\n {2}Views: now, lookups/);
  refused('lookups?sort=colour', /cannot be sorted by colour\n {2}Columns: time, took/);
  refused('lookups?rows=0', /rows takes a whole number from 1 to 1000/);
  refused('lookups?rows=1e9', /rows takes a whole number/);
  refused('lookups?filter=rcod=NXDOMAIN', /did you mean rcode/);
  refused('lookups?filter=ip=300.1.2.3', /300\.1\.2\.3/);
  refused('lookups?filter=namespace=shop', /namespace: start with --cluster or --manifests/);
  refused('lookups?filter=command=curl', /command: only ndots capture --process/);
});
