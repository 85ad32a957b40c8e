/** `https`: limits for HTTPS listeners. */
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { maximum, unlessZero } from '../../corefile/maximum.ts';

const syntax = directive({
  name: 'https',
  summary: 'limits the number of connections to HTTPS listeners',
  repeat: 'first',
  properties: {
    maxConnections: maximum('max_connections', 'connections at a time', '1024'),
  },
});

/** Only affects configuration. */
export const https: Plugin = definePlugin({
  syntax,
  plan({ maxConnections }, plan) {
    if (maxConnections === null) return;
    plan.limits.of.https = { connections: unlessZero(maxConnections) };
  },
});
