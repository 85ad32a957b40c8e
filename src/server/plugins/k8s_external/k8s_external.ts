/** `k8s_external`: serves the cluster's services under their external names and addresses. */
import { Problem } from '../../base/problem.ts';
import { zones } from '../../corefile/positions.ts';
import { chained, fallthrough, flag, lax, setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { seconds, value, worded, wrong } from '../../corefile/word-values.ts';
import { isDomainName } from '../../corefile/zones.ts';
import { definePlugin, type Next, type Plugin } from '../../engine/contract/plugin.ts';
import { outsideServices, type OutsideServices } from '../../engine/contract/ports.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { transferSources } from '../../zone/transfer-source.ts';
import { ExternalAnswerer, PLUGIN } from './answer.ts';
import { externalZone } from './external-zone.ts';
import { externalTransfers } from './transfer.ts';

const TTL_SECONDS = 5;

const syntax = directive({
  name: PLUGIN,
  summary: 'answers queries for the external addresses of services',
  repeat: 'merge',
  args: { zones: zones({ help: 'zones in which to serve these names' }) },
  properties: {
    apex: lax(
      setting(
        'apex',
        value('LABEL', ({ text }) =>
          isDomainName(text)
            ? text.replace(/\.$/, '').toLowerCase()
            : wrong(`not a domain name: ${text}`),
        ),
        { default: 'dns', help: 'the name server is `ns1.LABEL.ZONE`' },
      ),
    ),
    ttlSeconds: lax(
      setting(
        'ttl',
        worded(seconds('TTL', { min: 0, max: 3600 }), (text, reason) =>
          reason.startsWith('strconv') ? reason : `ttl must be in range [0, 3600]: ${text}`,
        ),
        { default: TTL_SECONDS, help: 'TTL of all records, 0 to 3600' },
      ),
    ),
    headless: chained(
      flag('headless', {
        help: 'resolve headless services without external addresses to their endpoints',
      }),
    ),
    fallthrough: fallthrough(),
  },
});

/** Answers from the data that `kubernetes` has in the same server block. */
export const k8sExternal: Plugin = definePlugin({
  syntax,
  control(_options, context) {
    if (context.has('kubernetes')) return;
    throw new Problem({
      code: 'kubernetes-missing',
      text: `plugin/${PLUGIN}: kubernetes plugin not loaded`,
      remedy: 'Add `kubernetes ZONE`, which provides the services, to the same server block.',
    });
  },

  setup(options, context, next): Next {
    const { apex, ttlSeconds, headless } = options;
    const own = options.zones.map((text) => externalZone(text, apex, ttlSeconds));
    const through = options.fallthrough === null ? null : new ZoneMatch(options.fallthrough);

    // `kubernetes` comes later in the chain, so it has already been set up.
    const services: OutsideServices | undefined = context.find(outsideServices)[0];
    if (services === undefined) return next;
    context.offer(transferSources, externalTransfers(own, services, headless));
    const answerer = new ExternalAnswerer({
      zones: own.toSorted((a, b) => b.name.length - a.name.length),
      primary: own[0]!,
      headless,
      services,
      passes: (query) => through?.holds(query) === true,
      writer: context.writer,
      ask: context.ask,
      next,
    });
    return (query) => answerer.answer(query);
  },
});
