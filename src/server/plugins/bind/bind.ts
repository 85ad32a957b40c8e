/** `bind`: the addresses a server block listens on. */
import { isIP } from '../../base/ip.ts';
import { position } from '../../corefile/positions.ts';
import { list } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { word } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const syntax = directive({
  name: 'bind',
  summary: 'sets the addresses to listen on',
  repeat: 'gather',
  args: {
    addresses: position(
      'ADDRESS|INTERFACE…',
      'addresses to listen on; an interface name means all of its addresses',
      (line) => {
        if (line.left === 0) line.refuse('at least one address or interface name is required');
        const words = line.takeAll();
        const wrong = words.find(({ text }) => isMeantAsAddress(text));
        if (wrong !== undefined)
          line.refuse(`not a valid IP address or interface name: '${wrong.text}'`, wrong.place, {
            code: 'bind-unknown-interface',
            hint: 'An IPv4 address consists of four numbers from 0 to 255. The port follows the zone: .:1053',
          });
        return words.map(({ text }) => text);
      },
    ),
  },
  properties: {
    except: list('except', word('ADDRESS|INTERFACE'), { help: 'addresses to exclude' }),
  },
});

/** True if a word can be neither an address nor an interface, such as `10.0.0.300`. */
function isMeantAsAddress(text: string): boolean {
  return isIP(text) === 0 && /^[\d.:]+$/.test(text) && /[.:]/.test(text);
}

/**
 * Affects only the configuration. Interfaces are looked up when the configuration is loaded, so a new address requires
 * a reload.
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
