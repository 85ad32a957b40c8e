/** `bind`: the addresses that a server block listens on. */
import { position } from '../../corefile/positions.ts';
import { list } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { word } from '../../corefile/values.ts';
import { definePlugin, type Plugin } from '../../server/contract/plugin.ts';

const syntax = directive({
  name: 'bind',
  summary: 'says which addresses to listen on',
  repeat: 'gather',
  args: {
    addresses: position(
      'ADDRESS|INTERFACE…',
      'addresses, or interfaces that stand for all their addresses',
      (line) => {
        if (line.left === 0) line.refuse('at least one address or interface name is expected');
        return line.takeAll().map(({ text }) => text);
      },
    ),
  },
  properties: {
    except: list('except', word('ADDRESS|INTERFACE'), { help: 'not these' }),
  },
});

/**
 * Configures only. Interfaces are looked up when the configuration is taken: a new address needs a
 * reload.
 */
export const bind: Plugin = definePlugin({
  syntax,
  plan(options, plan) {
    for (const { addresses, except } of options) {
      plan.binds.push(...addresses);
      plan.bindExcept.push(...except);
    }
  },
});
