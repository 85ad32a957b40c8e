/** `shed`: accepted; what it does in CoreDNS is done here without it. */
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../server/contract/plugin.ts';

const syntax = directive({
  name: 'shed',
  summary:
    'accepted for compatibility: queries are shed without it where the server cannot keep up',
  repeat: 'once',
});

/** Changes nothing. */
export const shed: Plugin = definePlugin({ syntax });
