/**
 * Encodes metrics as protocol buffers, which Prometheus requests for native histograms. The messages are
 * `io.prometheus.client.MetricFamily`, each preceded by its length. Histograms have both kinds of bucket, and the
 * scraper stores the kind it is configured for.
 */
import { MessageBuilder, varint } from '../base/protobuf.ts';
import type { Exposed, ExposedSeries } from './exposition.ts';
import { NATIVE_SCHEMA, type NativeRange } from './native.ts';

/** Encodes the families in the given order. */
export function writeExposition(families: Iterable<Exposed>): Buffer {
  const parts: Buffer[] = [];
  for (const family of families) {
    const message = writeFamily(family);
    parts.push(varint(message.length), message);
  }
  return Buffer.concat(parts);
}

/** The `MetricType` of each kind. */
const types: Readonly<Record<Exposed['kind'], number>> = {
  counter: 0,
  gauge: 1,
  summary: 2,
  histogram: 4,
};

/** The field of `Metric` that contains the value, by kind. */
const fields: Readonly<Record<Exposed['kind'], number>> = {
  gauge: 2,
  counter: 3,
  summary: 4,
  histogram: 7,
};

function writeFamily(family: Exposed): Buffer {
  const { name, help, kind, series } = family;
  const message = new MessageBuilder().bytes(1, name).bytes(2, help.toWellFormed());
  message.number(3, types[kind]);
  for (const each of series) {
    const metric = new MessageBuilder();
    each.names.forEach((label, index) => {
      const value = each.ordered[index]!.toWellFormed();
      metric.message(1, new MessageBuilder().bytes(1, label).bytes(2, value).build());
    });
    message.message(4, metric.message(fields[kind], writeValue(family, each)).build());
  }
  return message.build();
}

function writeValue(family: Exposed, series: ExposedSeries): Buffer {
  if (family.kind === 'histogram') return writeHistogram(family, series);
  if (family.kind === 'summary') return writeSummary(family, series);
  return new MessageBuilder().double(1, series.values[0]!).build();
}

function writeSummary({ bounds }: Exposed, { values }: ExposedSeries): Buffer {
  const message = new MessageBuilder();
  message.number(1, values[bounds.length + 1]!).double(2, values[bounds.length]!);
  bounds.forEach((quantile, index) => {
    message.message(3, new MessageBuilder().double(1, quantile).double(2, values[index]!).build());
  });
  return message.build();
}

function writeHistogram({ bounds, native }: Exposed, series: ExposedSeries): Buffer {
  const { values } = series;
  const buckets = new MessageBuilder();
  let hits = 0;
  for (let bucket = 0; bucket <= bounds.length; bucket++) {
    hits += values[bucket]!;
    const bound = bounds[bucket] ?? Infinity;
    buckets.message(3, new MessageBuilder().number(1, hits).double(2, bound).build());
  }
  const fine = native !== null && series.native ? native : null;
  const from = bounds.length + 2;
  // Prometheus rejects native buckets whose sum differs from the count, and the count may have risen while the cells
  // were read.
  if (fine !== null) {
    hits = 0;
    for (let cell = 0; cell < fine.cells; cell++) hits += values[from + cell]!;
  }
  const message = new MessageBuilder().number(1, hits).double(2, values[bounds.length + 1]!);
  const parts = [message.build(), buckets.build()];
  if (fine !== null) parts.push(writeNative(fine, values, from));
  return Buffer.concat(parts);
}

/** If the gap has more empty buckets than this, a new span starts. In shorter gaps, the empty buckets are written. */
const GAP = 2;

/** Writes spans of adjacent buckets, with each bucket encoded as the difference from the previous one. */
function writeNative(range: NativeRange, values: ArrayLike<number>, from: number): Buffer {
  const message = new MessageBuilder();
  message.signed(5, NATIVE_SCHEMA).double(6, range.zeroThreshold).number(7, values[from]!);
  const spans: { readonly offset: number; length: number }[] = [];
  const deltas: number[] = [];
  let before = 0;
  let next = 0;
  for (let cell = 1; cell < range.cells; cell++) {
    const count = values[from + cell]!;
    if (count === 0) continue;
    const index = range.indexOf(cell);
    const span = spans.at(-1);
    if (span === undefined || index - next > GAP) {
      spans.push({ offset: span === undefined ? index : index - next, length: 1 });
    } else {
      span.length += index - next + 1;
      for (; next < index; next++) {
        deltas.push(-before);
        before = 0;
      }
    }
    deltas.push(count - before);
    before = count;
    next = index + 1;
  }
  for (const { offset, length } of spans)
    message.message(12, new MessageBuilder().signed(1, offset).number(2, length).build());
  return message.signedList(13, deltas).build();
}
