import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentTypes, type ExpositionFormat, formatFor } from './formats.ts';

const cases: readonly (readonly [string, string | null | undefined, ExpositionFormat])[] = [
  ['no Accept header', undefined, 'text'],
  ['an empty Accept header', '', 'text'],
  ['curl', '*/*', 'text'],
  ['a browser', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text'],
  [
    'Prometheus 2.42',
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,' +
      'text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'openmetrics',
  ],
  [
    'Prometheus 3, which likes a text version best that is not spoken here',
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,' +
      'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,*/*;q=0.2',
    'openmetrics',
  ],
  [
    'an old Prometheus that knows only the draft of OpenMetrics',
    'application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'text',
  ],
  [
    'a scraper that weighs text higher',
    'application/openmetrics-text;q=0.3, text/plain;q=0.9',
    'text',
  ],
  ['a scraper that rules OpenMetrics out', 'application/openmetrics-text;q=0', 'text'],
  [
    'spaces, capitals and quotes',
    'Application/OpenMetrics-Text ; Version="1.0.0" ; q=1',
    'openmetrics',
  ],
  [
    'Prometheus 3 that stores native histograms',
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,' +
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,*/*;q=0.2',
    'protobuf',
  ],
  [
    'a scraper of other messages',
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text,text/plain;q=0.1',
    'text',
  ],
  ['a weight that is none', 'application/openmetrics-text;q=high', 'text'],
];

for (const [who, header, format] of cases) {
  test(`${who} gets ${format}`, () => assert.equal(formatFor(header), format));
}

test('content types include version and character set', () => {
  assert.equal(contentTypes.text, 'text/plain; version=0.0.4; charset=utf-8');
  assert.equal(
    contentTypes.openmetrics,
    'application/openmetrics-text; version=1.0.0; charset=utf-8',
  );
});
