/** The syntax and defaults of the `cache` directive. */
import { limit } from '../../base/limits.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import {
  leading,
  optional,
  required,
  zones,
  type Position,
  type BoundPositions,
} from '../../corefile/positions.ts';
import {
  custom,
  each,
  fields,
  flag,
  lax,
  setting,
  type PropertySchema,
} from '../../corefile/properties.ts';
import { directive, type Options, type Syntax } from '../../corefile/syntax.ts';
import {
  byteSize,
  choice,
  duration,
  integer,
  percent,
  value,
  worded,
  wrong,
  Wrong,
} from '../../corefile/word-values.ts';
import type { Value } from '../../corefile/word-values.ts';
import { parseDuration } from '../../base/duration.ts';
import { memoryLimit } from '../../runtime/memory-limit.ts';
import { memoryShare, type MemoryTerms } from '../../runtime/memory-share.ts';

/** Memory for stored messages. Typically, 20 000 messages take 4 MB; the limit keeps large ones from taking over. */
const bytesLimit = limit({ default: 2 ** 25, min: 2 ** 20, max: 2 ** 32 });
/** A quarter of the container's memory that is left after the server's own needs, as for other large components. */
const MESSAGE_MEMORY: MemoryTerms = { times: 4, least: 2 ** 22, unlimited: bytesLimit.default };
/** Maximum number of queries waiting for an identical one; each uses about 1 KB. */
const waitingLimit = limit({ default: 10_000, min: 0, max: 1_000_000 });
const CAPACITY = 10_000;
const CAPACITY_MIN = 1024;
const SUCCESS_SECONDS = 3600;
const DENIAL_SECONDS = 1800;
const MIN_SECONDS = 5;
const FIVE_MINUTES_MS = 300_000;

const isNumber = (text: string): boolean => /^[+-]?\d+$/.test(text);

/** A TTL of at least one second. A word that is not a number may belong to the next argument. */
const positiveTtl = worded(integer('TTL', { min: 1 }), (text, reason) =>
  isNumber(text) ? `cache TTL can not be zero or negative: ${text}` : reason,
);
/** The largest TTL that resolvers accept, in seconds. A value with the top bit set counts as 0 (RFC 2181 section 8). */
const MIN_TTL_MAX = 0x7fff_ffff;
const minTtl = worded(integer('MINTTL', { min: 0, max: MIN_TTL_MAX }), (text, reason) => {
  if (!isNumber(text)) return reason;
  return text.startsWith('-')
    ? `cache min TTL can not be negative: ${text}`
    : `cache min TTL can not exceed ${MIN_TTL_MAX}: ${text}`;
});
const amount = worded(integer('AMOUNT', { min: 0 }), (text, reason) =>
  isNumber(text) ? `prefetch amount should be positive: ${text}` : reason,
);
const percentage = worded(percent('PERCENTAGE%', { min: 10, max: 90 }), (text, reason) =>
  /^\d+%$/.test(text) ? `percentage should fall in range [10, 90]: ${text.slice(0, -1)}` : reason,
);
const servfail = worded(
  duration('DURATION', { minMs: 0, maxMs: FIVE_MINUTES_MS }),
  (text, reason) => {
    const ms = parseDuration(text);
    if (ms === null) return reason;
    return ms < 0
      ? `invalid negative ttl for servfail '${text}'`
      : `caching SERVFAIL responses over 5 minutes is not permitted: ${text}`;
  },
);

export interface StaleOptions {
  readonly forMs: number;
  readonly mode: 'immediate' | 'verify';
  /** With `verify`, how long to wait for the fresh reply, in ms; 0 means indefinitely. */
  readonly timeoutMs: number;
  /** TTL of stale replies in seconds. */
  readonly ttlSeconds: number;
  /** Pause after a failed refresh, in ms. */
  readonly recheckMs: number;
}

const span = duration('DURATION');
/** A TTL is 32 bits wide (RFC 1035 section 3.2.1). */
const TTL_MAX_SECONDS = 0xffff_ffff;

const serveStale = custom<StaleOptions>(
  'serve_stale',
  '[DURATION [immediate [RESP_TTL [RECHECK]] | verify [TIMEOUT [RESP_TTL [RECHECK]]]]]',
  (words, refuse) => {
    const left = [...words];
    const time = (fallback: number, what: string, negative: string): number => {
      const word = left.shift();
      if (word === undefined) return fallback;
      const ms = span.read(word);
      if (ms instanceof Wrong)
        return refuse(`${what}${ms.text}`, word.place, { hint: ms.hint ?? undefined });
      if (ms < 0) return refuse(`invalid negative ${negative} '${word.text}'`, word.place);
      return ms;
    };
    const forMs = time(3_600_000, '', 'duration for serve_stale');
    const word = left.shift();
    const mode = word?.text.toLowerCase() ?? 'immediate';
    if (mode !== 'immediate' && mode !== 'verify') {
      return refuse(`invalid value for serve_stale refresh mode: ${mode}`, word?.place, {
        hint: 'The refresh mode is immediate or verify.',
      });
    }
    const timeoutMs =
      mode === 'verify'
        ? time(0, 'invalid serve_stale verify timeout: ', 'timeout for serve_stale verify')
        : 0;
    const ttlAt = left[0]?.place;
    const ttlSeconds =
      time(0, 'invalid serve_stale response TTL: ', 'response TTL for serve_stale') / 1000;
    if (!Number.isInteger(ttlSeconds))
      return refuse('serve_stale response TTL must be a whole number of seconds', ttlAt);
    if (ttlSeconds > TTL_MAX_SECONDS)
      return refuse('serve_stale response TTL exceeds the DNS TTL range', ttlAt);
    const recheckAt = left[0]?.place;
    const recheckMs = time(
      0,
      'invalid serve_stale failure recheck: ',
      'failure recheck for serve_stale',
    );
    if (recheckMs > FIVE_MINUTES_MS)
      return refuse('serve_stale failure recheck cannot exceed 5 minutes', recheckAt);
    if (left.length > 0)
      return refuse(`Wrong argument count or unexpected line ending after '${left.at(-1)!.text}'`);
    return { forMs, mode, timeoutMs, ttlSeconds, recheckMs };
  },
  {
    help:
      'serve and refresh entries for up to DURATION after they expire; `immediate`: without waiting, `verify`: only if the ' +
      'refresh fails (within TIMEOUT); RESP_TTL is the TTL sent, and RECHECK the pause after a failed refresh',
    defaultText: 'off; without values, 1h immediate 0s 0s',
  },
);

const policy: Value<'prefer_positive'> = value('prefer_positive', ({ text }) =>
  text.toLowerCase() === 'prefer_positive'
    ? 'prefer_positive'
    : wrong(`invalid serve_stale_policy: ${text}`, 'The only policy is prefer_positive.'),
);

type HalfFields = {
  readonly capacity: Position<number>;
  readonly ttlSeconds: Position<number | null>;
  readonly minTtlSeconds: Position<number | null>;
};

const half: HalfFields = {
  capacity: required(integer('CAPACITY')),
  ttlSeconds: optional(positiveTtl),
  minTtlSeconds: optional(minTtl),
};

export const syntax: Syntax<
  {
    maxTtlSeconds: Position<number | null>;
    zones: Position<readonly string[]>;
  },
  {
    success: PropertySchema<BoundPositions<HalfFields> | null>;
    denial: PropertySchema<BoundPositions<HalfFields> | null>;
    prefetch: PropertySchema<BoundPositions<{
      amount: Position<number>;
      gapMs: Position<number>;
      percentage: Position<number>;
    }> | null>;
    serveStale: PropertySchema<StaleOptions | null>;
    stalePolicies: PropertySchema<
      readonly BoundPositions<{
        policy: Position<'prefer_positive'>;
      }>[]
    >;
    servfailMs: PropertySchema<number>;
    disable: PropertySchema<
      readonly BoundPositions<{
        half: Position<'success' | 'denial'>;
        zones: Position<readonly string[]>;
      }>[]
    >;
    keepttl: PropertySchema<boolean>;
    maxBytes: PropertySchema<number | null>;
    coalesce: PropertySchema<number>;
    followSerial: PropertySchema<BoundPositions<{ everyMs: Position<number> }> | null>;
  },
  'once'
> = directive({
  name: 'cache',
  summary: 'caches replies and answers repeated queries from memory',
  repeat: 'once',
  args: {
    maxTtlSeconds: leading(positiveTtl, {
      help: 'maximum time to cache replies, in seconds (default: 3600, or 1800 for denials)',
    }),
    zones: zones({ help: 'zones to cache' }),
  },
  properties: {
    success: lax(
      fields('success', half, {
        help: 'for positive replies, the number of entries (10000) and the maximum (3600) and minimum (5) time in seconds',
      }),
    ),
    denial: lax(
      fields('denial', half, {
        help: 'the same for "no such name" and "no data" replies (10000 1800 5)',
      }),
    ),
    prefetch: fields(
      'prefetch',
      {
        amount: required(amount),
        gapMs: optional(duration('DURATION', { minMs: 0 }), { default: 60_000 }),
        percentage: optional(percentage, { default: 10 }),
      },
      {
        help: 'refresh entries that have been hit AMOUNT times, with no gap longer than DURATION, once only PERCENTAGE of their time remains',
      },
    ),
    serveStale,
    stalePolicies: each(
      'serve_stale_policy',
      { policy: required(policy) },
      {
        help: 'prefer stale data to fresh denials; requires serve_stale',
      },
    ),
    servfailMs: setting('servfail', servfail, {
      default: 5000,
      help: 'how long to cache SERVFAIL and NOTIMP; 0: not at all',
    }),
    disable: each(
      'disable',
      { half: required(choice('success', 'denial')), zones: zones() },
      { help: 'do not cache this kind of reply for ZONES' },
    ),
    keepttl: flag('keepttl', { help: 'send the original TTL in replies from memory' }),
    maxBytes: setting('max_bytes', byteSize('SIZE', bytesLimit), {
      help: "memory for stored messages (default: 32MiB, or a quarter of the container's memory above 95 MiB if that is less; with a limit of 170 MiB, this is 18 MiB)",
    }),
    coalesce: setting('coalesce', integer('QUERIES', waitingLimit), {
      default: waitingLimit.default,
      help: 'how many queries may wait for identical in-flight queries; 0: send every query',
    }),
    followSerial: fields(
      'follow_serial',
      { everyMs: optional(duration('DURATION', { minMs: 100, maxMs: 60_000 }), { default: 1000 }) },
      {
        help: "keep denials until the zone's SOA serial changes; while denials are being queried, the serial is checked at least once per DURATION (1s)",
      },
    ),
  },
  check({ stalePolicies, serveStale: stale }, at) {
    const again = stalePolicies.length > 1;
    if (!again && (stalePolicies.length === 0 || stale !== null)) return [];
    const text = `serve_stale_policy ${again ? 'can only be specified once' : 'requires serve_stale'}`;
    const remedy = again ? 'Remove the second line.' : 'Add serve_stale, or remove the line.';
    return [pluginProblem('cache', at, text, { remedy })];
  },
  warn: (options, at) =>
    (['success', 'denial'] as const).flatMap((kind) => {
      const capacity = options[kind]?.capacity ?? CAPACITY;
      const text = `${kind} ${capacity} is raised to ${CAPACITY_MIN} entries, the smallest possible cache`;
      const remedy = `To store none, write: disable ${kind}`;
      return capacity >= 1 ? [] : [pluginRemark('cache', at, text, { remedy })];
    }),
});

export interface HalfOptions {
  readonly capacity: number;
  readonly maxSeconds: number;
  readonly minSeconds: number;
}

export interface CacheOptions {
  readonly zones: readonly string[];
  readonly success: HalfOptions;
  readonly denial: HalfOptions;
  /** An `amount` of 0 disables it. */
  readonly prefetch: {
    readonly amount: number;
    readonly gapMs: number;
    readonly percentage: number;
  };
  readonly stale: StaleOptions | null;
  readonly preferPositive: boolean;
  readonly servfailMs: number;
  readonly disable: Options<typeof syntax>['disable'];
  readonly keepTtl: boolean;
  readonly maxBytes: number;
  readonly coalesce: number;
  /** Interval between serial checks in milliseconds, or null if they are disabled. */
  readonly followMs: number | null;
}

/**
 * Fills in the directive's defaults.
 * @param memory how many bytes the process may use, or Infinity if unlimited
 */
export function readOptions(
  options: Options<typeof syntax>,
  memory: number = memoryLimit(),
): CacheOptions {
  const filled = (own: Options<typeof syntax>['success'], seconds: number): HalfOptions => ({
    capacity: own?.capacity ?? CAPACITY,
    maxSeconds: own?.ttlSeconds ?? options.maxTtlSeconds ?? seconds,
    minSeconds: own?.minTtlSeconds ?? MIN_SECONDS,
  });
  const stale =
    options.serveStale !== null && options.serveStale.forMs > 0 ? options.serveStale : null;
  return {
    zones: options.zones,
    success: filled(options.success, SUCCESS_SECONDS),
    denial: filled(options.denial, DENIAL_SECONDS),
    prefetch: options.prefetch ?? { amount: 0, gapMs: 60_000, percentage: 10 },
    stale,
    preferPositive: stale !== null && options.stalePolicies.length > 0,
    servfailMs: options.servfailMs,
    disable: options.disable,
    keepTtl: options.keepttl,
    maxBytes: options.maxBytes ?? Math.min(bytesLimit.default, memoryShare(memory, MESSAGE_MEMORY)),
    coalesce: options.coalesce,
    followMs: options.followSerial?.everyMs ?? null,
  };
}
