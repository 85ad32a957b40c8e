/** `https`: limits of HTTPS listeners. */
import { setting, type Property } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { integer, value, Wrong, wrong } from '../../corefile/values.ts';
import { definePlugin, type Plugin } from '../../server/contract/plugin.ts';

const whole = integer('COUNT');

const connections = value('COUNT', (word) => {
  const count = whole.read(word);
  if (count instanceof Wrong) {
    const { text, hint, form } = count;
    return new Wrong(`invalid max_connections value '${word.text}': ${text}`, hint, form);
  }
  return count < 0 ? wrong(`max_connections must be a non-negative integer: ${count}`) : count;
});

const maxConnections = setting('max_connections', connections, {
  help: 'connections at a time, 0: no limit (default 1024)',
});

const once: Property<number | null> = {
  ...maxConnections,
  take(line, before, bind) {
    if (before !== null) line.refuse('max_connections already defined for this server block');
    return maxConnections.take(line, before, bind);
  },
};

const syntax = directive({
  name: 'https',
  summary: 'limits the connections of HTTPS listeners',
  repeat: 'once',
  properties: {
    maxConnections: once,
  },
});

/** Configures only. */
export const https: Plugin = definePlugin({
  syntax,
  plan({ maxConnections }, plan) {
    if (maxConnections === null) return;
    plan.limits.connectionsOf.https = maxConnections === 0 ? Infinity : maxConnections;
  },
});
