/** `timeouts`: time limits for connections. */
import { parseDuration } from '../../base/duration.ts';
import { setting } from '../../corefile/properties.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive } from '../../corefile/syntax.ts';
import { integer, value, Wrong, wrong, wrongForm } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const DAY_MS = 24 * 3600 * 1000;

/** A number without a unit means seconds here. */
const timeout = value('DURATION', ({ text }) => {
  const whole = /^\d+$/.test(text) ? `${text}s` : text;
  const ms = parseDuration(whole);
  if (ms === null)
    return wrongForm(
      `failed to parse duration '${whole}'`,
      'Durations are written like 10s, 1m30s or 500ms',
    );
  if (ms < 1000 || ms > DAY_MS) {
    return wrong(`timeout provided '${text}' needs to be between 1 second and 24 hours`);
  }
  return ms;
});

const plainCount = integer('COUNT');

const queries = value('COUNT', (word) => {
  const count = plainCount.read(word);
  if (count instanceof Wrong) {
    return new Wrong(
      `invalid value for maxtcpqueries '${word.text}': ${count.text}`,
      count.hint,
      count.form,
    );
  }
  return count === 0 || count < -1
    ? wrong(`maxtcpqueries provided '${count}' needs to be -1 (unlimited) or a positive integer`)
    : count;
});

const syntax = directive({
  name: 'timeouts',
  summary: 'sets timeouts for client connections',
  repeat: 'gather',
  properties: {
    readMs: setting('read', timeout, {
      help: 'time allowed for the first query on a connection (default 3s)',
    }),
    writeMs: setting('write', timeout, {
      help: 'time allowed for a client to read its reply (default 5s)',
    }),
    idleMs: setting('idle', timeout, {
      help: 'time allowed between two queries on a connection (default 10s)',
    }),
    maxTcpQueries: setting('maxtcpqueries', queries, {
      help: 'number of queries on a connection before it is closed (default -1, no limit)',
    }),
  },
  check: (options, at) =>
    options.some(({ at: _place, ...limits }) =>
      Object.values(limits).some((limit) => limit !== null),
    )
      ? []
      : [pluginProblem('timeouts', at, 'timeouts block with no timeouts specified')],
});

/** Affects only the configuration, for the block's TCP, TLS and HTTPS listeners. */
export const timeouts: Plugin = definePlugin({
  syntax,
  plan(options, plan) {
    for (const { readMs, writeMs, idleMs, maxTcpQueries } of options) {
      const { limits } = plan;
      if (readMs !== null) limits.readTimeoutMs = readMs;
      if (writeMs !== null) limits.writeTimeoutMs = writeMs;
      if (idleMs !== null) limits.idleTimeoutMs = idleMs;
      if (maxTcpQueries !== null) limits.maxQueries = maxTcpQueries;
    }
  },
});
