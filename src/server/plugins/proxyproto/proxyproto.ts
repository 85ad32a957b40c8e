/** `proxyproto`: reads the client's address from a load balancer's PROXY protocol header. */
import { parseDuration } from '../../base/duration.ts';
import { parseNet, type Net } from '../../base/ip.ts';
import { limit } from '../../base/limits.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { custom, each, type PropertySchema } from '../../corefile/properties.ts';
import { rest } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { value, wrong } from '../../corefile/word-values.ts';
import type { ProxyAction } from '../../transport/proxy/proxy-policy.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

/** CoreDNS's default; a session uses about 300 bytes in each worker. */
const sessionsLimit = limit({ default: 10_240, min: 1, max: 1_000_000 });

const actions: readonly ProxyAction[] = ['use', 'ignore', 'reject', 'skip'];

/** As in CoreDNS, an address without a prefix length is invalid. */
const cidr = value<Net>(
  'CIDR',
  ({ text }) =>
    (text.includes('/') ? parseNet(text) : null) ??
    wrong(
      `${text}: invalid CIDR address: ${text}`,
      'Write networks as 10.0.0.0/8 or 2001:db8::/32, and single addresses with /32 or /128.',
    ),
);

const others: PropertySchema<ProxyAction | null> = custom<ProxyAction>(
  'default',
  'use|ignore|reject|skip',
  (words, refuse) => {
    const found = actions.find((action) => action === words[0]?.text.toLowerCase());
    return words.length === 1 && found !== undefined
      ? found
      : refuse(
          `Wrong argument count or unexpected line ending after '${words.at(-1)?.text ?? 'default'}'`,
          undefined,
          {
            hint: 'Write: default use|ignore|reject|skip',
          },
        );
  },
  {
    help: 'how to handle headers from other sources: use them, ignore them, close the connection, or treat them as part of the query (default: ignore, or use if there is no `allow`)',
  },
);

const tracking: PropertySchema<{ readonly ms: number; readonly sessions: number } | null> = custom(
  'udp_session_tracking',
  'DURATION [MAX_SESSIONS]',
  (words, refuse) => {
    const [time, most] = words;
    if (time === undefined || words.length > 2)
      return refuse("Wrong argument count or unexpected line ending after 'udp_session_tracking'");
    const ms = parseDuration(time.text);
    if (ms === null)
      return refuse(
        `udp_session_tracking: invalid duration ${JSON.stringify(time.text)}`,
        time.place,
        { hint: 'Durations are written like 28s or 1m.' },
      );
    if (most === undefined) return { ms, sessions: sessionsLimit.default };
    const sessions = /^[1-9]\d{0,8}$/.test(most.text) ? Number(most.text) : 0;
    return sessions === 0
      ? refuse(
          `udp_session_tracking: invalid max sessions ${JSON.stringify(most.text)}: must be a positive integer`,
          most.place,
        )
      : { ms, sessions: Math.min(sessions, sessionsLimit.max) };
  },
  {
    help: `how long a UDP header applies to later datagrams from the same address and port, for up to MAX_SESSIONS sources per worker (${sessionsLimit.default})`,
  },
);

const syntax = directive({
  name: 'proxyproto',
  summary: "reads the client's address from a load balancer's PROXY protocol header",
  repeat: 'merge',
  properties: {
    allow: each('allow', { nets: rest(cidr) }, { help: 'sources whose headers are accepted' }),
    others,
    tracking,
  },
  warn: ({ allow, others: said, at }) =>
    allow.some(({ nets }) => nets.length > 0) || (said !== null && said !== 'use')
      ? []
      : [
          pluginRemark(
            'proxyproto',
            at,
            "headers from all sources are accepted, so any client can claim another's address",
            { remedy: 'Add `allow CIDR…` with the load balancers’ addresses.' },
          ),
        ],
});

/** Affects only the configuration, separately for each listener on the block's addresses. */
export const proxyproto: Plugin = definePlugin({
  syntax,
  plan({ allow, others: said, tracking: sessions }, plan) {
    const nets = allow.flatMap((line) => line.nets);
    plan.proxy = {
      allow: nets,
      others: said ?? (nets.length === 0 ? 'use' : 'ignore'),
      sessionMs: Math.max(0, sessions?.ms ?? 0),
      sessions: sessions?.sessions ?? sessionsLimit.default,
    };
  },
});
