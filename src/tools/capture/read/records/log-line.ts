/**
 * Parses a log line, stripping anything that collectors add. These are `kubectl logs --timestamps --prefix`, stern,
 * container runtime files, docker's JSON, Loki, journald and klog.
 */
import { asObject, text as textIn, type JsonObject } from '../../../../server/base/json-object.ts';

export interface LogLine {
  /** The line from the level on (`[ERROR] plugin/…`), if it has one. */
  readonly text: string;
  /** The time in the prefix, in milliseconds since 1970, or null if there is none. */
  readonly timeMs: number | null;
  /** The pod named in the prefix, or empty if there is none. */
  readonly pod: string;
}

/** The level in CoreDNS and ndots lines, at the start or after a prefix. */
const LEVEL = /(?:^|[\s"}])(?=\[(?:DEBUG|INFO|WARNING|ERROR|FATAL|PANIC)\] )/;
const STAMP =
  /(?<![\w.])(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)(?=[\s\]}"]|$)/;
/** Matches `[pod/coredns-7d4/coredns]`, `coredns-7d4-x2 coredns` and `pod="coredns-7d4"`. */
const POD =
  /\[pod\/([\w.-]{1,253})\/|\bpod="?([\w.-]{1,253})"?|(?:^|\s)((?:coredns|kube-dns|node-local-dns|nodelocaldns|ndots)-[\w.-]{1,200})(?=\s)/;
/** Prefixes on a line without a level. They may repeat. */
const AROUND =
  /^(?:\[pod\/\S{1,300}\]\s+|\d{4}-\d\d-\d\d[T ]\S{8,35}\s+|std(?:out|err)\s+[FP]\s+|\{[^{}]{1,2000}\}\s+|(?:coredns|kube-dns|node-local-dns|nodelocaldns|ndots)-[\w.-]{1,200}\s+[\w.-]{1,63}\s+)+/;
/** The fields in which collectors store the line and its time. */
const LINES = ['log', 'line', 'message', 'msg', 'MESSAGE', 'textPayload', 'content', '_line'];
const TIMES = ['time', 'timestamp', 'ts', '@timestamp', '_time', 'date'];
/** No collector adds a prefix longer than this. */
const BEFORE_MAX = 2000;

export function logLine(raw: string): LogLine {
  const object = raw.startsWith('{') ? objectOf(raw) : null;
  if (object !== null) return ofObject(object);
  const at = LEVEL.exec(raw);
  if (at === null || at.index > BEFORE_MAX) {
    const around = AROUND.exec(raw)?.[0] ?? '';
    return { text: raw.slice(around.length), ...said(around) };
  }
  const start = at.index + at[0].length;
  return { text: raw.slice(start), ...said(raw.slice(0, start)) };
}

/** The time and pod in a prefix. */
function said(before: string): Pick<LogLine, 'timeMs' | 'pod'> {
  if (before === '') return { timeMs: null, pod: '' };
  const pod = POD.exec(before);
  return {
    timeMs: timeOf(STAMP.exec(before)?.[1]),
    pod: pod?.[1] ?? pod?.[2] ?? pod?.[3] ?? '',
  };
}

function objectOf(raw: string): JsonObject | null {
  try {
    return asObject(JSON.parse(raw));
  } catch {
    return null;
  }
}

/** Handles an object that a collector wrapped around the line, or one from a server that logs objects. */
function ofObject(object: JsonObject): LogLine {
  const line = LINES.map((key) => textIn(object, key)).find((each) => each !== '') ?? '';
  const inner = logLine(line.trimEnd().slice(0, 8192));
  const stamp = TIMES.map((key) => object[key]).find((each) => each !== undefined);
  const level = textIn(object, 'level').toUpperCase();
  const plugin = textIn(object, 'plugin');
  const isBare = level !== '' && !inner.text.startsWith('[');
  const by = plugin === '' || inner.text.startsWith('plugin/') ? '' : `plugin/${plugin}: `;
  const error = textIn(object, 'error') || textIn(object, 'err');
  const more = error === '' || inner.text.includes(error) ? '' : `: ${error}`;
  return {
    text: isBare
      ? `[${level === 'WARN' ? 'WARNING' : level}] ${by}${inner.text}${more}`
      : inner.text,
    timeMs: inner.timeMs ?? timeOf(stamp),
    pod: inner.pod || podOf(object),
  };
}

function podOf(object: JsonObject): string {
  for (const place of [object, object['labels'], object['kubernetes'], object['stream']]) {
    const found = asObject(place);
    const name = textIn(found, 'pod') || textIn(found, 'pod_name') || textIn(found, 'podName');
    if (name !== '') return name;
  }
  return '';
}

/** Accepts ISO 8601 or a number of seconds or smaller units since 1970. */
function timeOf(stamp: unknown): number | null {
  if (
    typeof stamp === 'number' ||
    (typeof stamp === 'string' && /^\d{10,19}(?:\.\d+)?$/.test(stamp))
  ) {
    let ms = Number(stamp);
    while (ms > 1e14) ms /= 1000;
    return ms < 1e11 ? ms * 1000 : ms;
  }
  if (typeof stamp !== 'string') return null;
  const text = stamp.replace(' ', 'T').replace(',', '.');
  // If there is no zone, it is most likely UTC, as in containers.
  const ms = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
  if (Number.isNaN(ms)) return null;
  // Date.parse stops at milliseconds.
  const fraction = /\.\d{3}(\d{1,6})/.exec(text)?.[1];
  return ms + (fraction === undefined ? 0 : Number(`0.${fraction}`));
}
