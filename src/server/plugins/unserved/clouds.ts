/** CoreDNS directives that read zones from cloud APIs. */
import { rest } from '../../corefile/positions.ts';
import { custom, fallthrough, list, setting } from '../../corefile/properties.ts';
import {
  choice,
  duration,
  integer,
  value,
  word,
  worded,
  wrong,
  type Value,
} from '../../corefile/word-values.ts';
import type { Plugin } from '../../engine/contract/plugin.ts';
import { refusing } from './unserved.ts';

/** Parses `PART:PART…`, which must have `count` parts that are not empty. */
function colonParts(show: string, count: number, message: string): Value<readonly string[]> {
  return value(show, ({ text }) => {
    const parts = text.split(':');
    const found = [...parts.slice(0, count - 1), parts.slice(count - 1).join(':')];
    const whole = parts.length >= count && found.every((part) => part !== '');
    return whole ? found : wrong(`${message} ${JSON.stringify(text)}`, `It is written ${show}.`);
  });
}

/** Seconds without a unit, or a duration. */
const refresh: Value<number> = worded(
  value('DURATION', (token) => {
    const text = /^\d+$/.test(token.text) ? `${token.text}s` : token.text;
    return duration('DURATION', { minMs: 1e-6 }).read({ ...token, text });
  }),
  (_word, reason) => `Unable to parse duration: ${reason}`,
);

/** Zones in Amazon's Route 53. */
export const route53: Plugin = refusing({
  shape: {
    name: 'route53',
    summary: "serves zones of Amazon's Route 53",
    args: { zones: rest(colonParts('ZONE:HOSTED_ZONE_ID', 2, 'invalid zone')) },
    properties: {
      accessKey: custom('aws_access_key', 'ID SECRET', (words, refuse) =>
        words.length < 2
          ? refuse(`invalid access key: '[${words.map(({ text }) => text).join(' ')}]'`)
          : words.map(({ text }) => text),
      ),
      endpoint: setting('aws_endpoint', word('ENDPOINT')),
      upstream: list('upstream', word('ADDRESS'), { min: 0 }),
      credentials: list('credentials', word('PROFILE'), { min: 1, max: 2 }),
      refresh: setting('refresh', refresh),
      fallthrough: fallthrough(),
    },
  },
  why: "its zones are read over Amazon's API with a cloud account's credentials, and this server has no client for that API.",
  instead:
    'Write `forward ZONE 169.254.169.253`: the VPC resolver answers for private hosted zones as well as public ones.',
});

export const azure: Plugin = refusing({
  shape: {
    name: 'azure',
    summary: 'serves zones of Azure DNS',
    args: { zones: rest(colonParts('RESOURCE_GROUP:ZONE', 2, 'invalid resource group/zone:')) },
    properties: {
      tenant: setting('tenant', word('TENANT_ID')),
      client: setting('client', word('CLIENT_ID')),
      secret: setting('secret', word('CLIENT_SECRET')),
      subscription: setting('subscription', word('SUBSCRIPTION_ID')),
      environment: setting('environment', word('ENVIRONMENT')),
      access: setting(
        'access',
        worded(
          choice('public', 'private'),
          (text) => `invalid access value: can be public/private, found: ${text}`,
        ),
      ),
      fallthrough: fallthrough(),
    },
  },
  why: "its zones are read over Azure's API with a cloud account's credentials, and this server has no client for that API.",
  instead:
    'Write `forward ZONE 168.63.129.16`: the virtual network’s resolver answers for the private zones that are linked to it, and for public ones.',
});

export const clouddns: Plugin = refusing({
  shape: {
    name: 'clouddns',
    summary: 'serves zones of Google Cloud DNS',
    args: { zones: rest(colonParts('ZONE:PROJECT_ID:HOSTED_ZONE_NAME', 3, 'invalid zone')) },
    properties: {
      upstream: list('upstream', word('ADDRESS'), { min: 0 }),
      credentials: setting('credentials', word('FILENAME')),
      fallthrough: fallthrough(),
    },
  },
  why: "its zones are read over Google's API with a cloud account's credentials, and this server has no client for that API.",
  instead:
    'Write `forward ZONE 169.254.169.254`: the VPC network’s resolver answers for its private zones as well as public ones.',
});

export const nomad: Plugin = refusing({
  shape: {
    name: 'nomad',
    summary: 'serves the services of HashiCorp Nomad',
    args: { zone: rest(word('ZONE'), { max: 1 }) },
    properties: {
      address: list('address', word('URL')),
      filter: setting('filter', word('EXPRESSION')),
      token: setting('token', word('TOKEN')),
      ttl: setting('ttl', integer('ttl', { min: 0, max: 3600 })),
    },
  },
  why: "it calls Nomad's API for each query, and ndots does not support that API.",
  instead:
    'Have a Nomad `template` write the services to a hosts file and serve it with `hosts FILE`, or run CoreDNS for this zone and `forward` it there.',
});
