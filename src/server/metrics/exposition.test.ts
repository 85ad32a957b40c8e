import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Exposed, type ExposedSeries, printExposition, printLabels } from './exposition.ts';

/** A label set with these labels, by name. */
function seriesOf(labels: Record<string, string>, values: readonly number[]): ExposedSeries {
  const names = Object.keys(labels);
  const ordered = Object.values(labels);
  return { labels: printLabels(names, ordered), names, ordered, values, native: false };
}

const requests: Exposed = {
  name: 'coredns_dns_requests_total',
  help: 'Queries by "type".\nAll of them \\ really.',
  kind: 'counter',
  bounds: [],
  native: null,
  series: [seriesOf({ type: 'A' }, [2e6]), seriesOf({ type: 'AAAA' }, [3])],
};

const durations: Exposed = {
  name: 'coredns_dns_request_duration_seconds',
  help: 'How long replies took.',
  kind: 'histogram',
  bounds: [0.00025, 1],
  native: null,
  series: [seriesOf({}, [1_000_000, 2, 1, 40.5]), seriesOf({ zone: '.' }, [0, 0, 0, 0])],
};

test('the text format prints help, type and series, with cumulative buckets', () => {
  assert.equal(
    printExposition([requests, durations], 'text'),
    String.raw`# HELP coredns_dns_requests_total Queries by "type".\nAll of them \\ really.
# TYPE coredns_dns_requests_total counter
coredns_dns_requests_total{type="A"} 2e+06
coredns_dns_requests_total{type="AAAA"} 3
# HELP coredns_dns_request_duration_seconds How long replies took.
# TYPE coredns_dns_request_duration_seconds histogram
coredns_dns_request_duration_seconds_bucket{le="0.00025"} 1e+06
coredns_dns_request_duration_seconds_bucket{le="1"} 1.000002e+06
coredns_dns_request_duration_seconds_bucket{le="+Inf"} 1.000003e+06
coredns_dns_request_duration_seconds_sum 40.5
coredns_dns_request_duration_seconds_count 1.000003e+06
coredns_dns_request_duration_seconds_bucket{zone=".",le="0.00025"} 0
coredns_dns_request_duration_seconds_bucket{zone=".",le="1"} 0
coredns_dns_request_duration_seconds_bucket{zone=".",le="+Inf"} 0
coredns_dns_request_duration_seconds_sum{zone="."} 0
coredns_dns_request_duration_seconds_count{zone="."} 0
`,
  );
});

test('OpenMetrics names the counter family without _total, writes floats as floats and counts in full, and ends with EOF', () => {
  assert.equal(
    printExposition([requests, durations], 'openmetrics'),
    String.raw`# HELP coredns_dns_requests Queries by \"type\".\nAll of them \\ really.
# TYPE coredns_dns_requests counter
coredns_dns_requests_total{type="A"} 2e+06
coredns_dns_requests_total{type="AAAA"} 3.0
# HELP coredns_dns_request_duration_seconds How long replies took.
# TYPE coredns_dns_request_duration_seconds histogram
coredns_dns_request_duration_seconds_bucket{le="0.00025"} 1000000
coredns_dns_request_duration_seconds_bucket{le="1.0"} 1000002
coredns_dns_request_duration_seconds_bucket{le="+Inf"} 1000003
coredns_dns_request_duration_seconds_sum 40.5
coredns_dns_request_duration_seconds_count 1000003
coredns_dns_request_duration_seconds_bucket{zone=".",le="0.00025"} 0
coredns_dns_request_duration_seconds_bucket{zone=".",le="1.0"} 0
coredns_dns_request_duration_seconds_bucket{zone=".",le="+Inf"} 0
coredns_dns_request_duration_seconds_sum{zone="."} 0.0
coredns_dns_request_duration_seconds_count{zone="."} 0
# EOF
`,
  );
});

test('a counter without _total keeps its name in OpenMetrics and has type unknown', () => {
  const old: Exposed = { ...requests, name: 'coredns_old_count', help: '' };
  assert.match(printExposition([old], 'openmetrics'), /^# TYPE coredns_old_count unknown\n/);
  assert.match(printExposition([old], 'text'), /^# TYPE coredns_old_count counter\n/);
});

test('no metrics give an empty page in text, and only EOF in OpenMetrics', () => {
  assert.equal(printExposition([], 'text'), '');
  assert.equal(printExposition([], 'openmetrics'), '# EOF\n');
});

test('quotes, backslashes and line ends in label values are escaped; half surrogates are replaced', () => {
  assert.equal(printLabels(['a', 'b'], ['say "hi"', 'c:\\\n']), 'a="say \\"hi\\"",b="c:\\\\\\n"');
  assert.equal(printLabels(['a'], ['\ud800x😀']), 'a="\ufffdx😀"');
});
