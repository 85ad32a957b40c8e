/** `shed`: accepted; what it does in CoreDNS is done here without it. */
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../server/contract/plugin.ts';

const syntax = directive({
  name: 'shed',
  summary:
    'accepted for compatibility: queries are shed without it where the server cannot keep up',
  repeat: 'once',
});

/** Changes nothing; a link all the same, so that it is among the plugins that are enabled, as in CoreDNS. */
export const shed: Plugin = definePlugin({ syntax, setup: (_options, _context, next) => next });
