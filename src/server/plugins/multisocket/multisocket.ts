/** `multisocket`: the number of sockets, and thus workers, for each address. */
import { cpuCount } from '../../base/cpu-count.ts';
import { optional } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { integer, value, Wrong, wrong } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

/** CoreDNS's limit on sockets, each of which is a thread here. */
const SOCKETS_MAX = 1024;
const whole = integer('NUM_SOCKETS');

const sockets = value('NUM_SOCKETS', (word) => {
  const count = whole.read(word);
  if (count instanceof Wrong)
    return new Wrong(`invalid num sockets: ${count.text}`, count.hint, count.form);
  if (count < 1) return wrong(`num sockets can not be zero or negative: ${count}`);
  return count > SOCKETS_MAX
    ? wrong(`num sockets exceeds maximum (${SOCKETS_MAX}): ${count}`)
    : count;
});

const syntax = directive({
  name: 'multisocket',
  summary: 'opens several sockets per address',
  repeat: 'once',
  args: {
    sockets: optional(sockets, {
      help: 'number of sockets, 1 to 1024 (default: the number of CPUs that the process may use)',
    }),
  },
});

/** Affects only the configuration. The first block with a shared address decides. */
export const multisocket: Plugin = definePlugin({
  syntax,
  plan(options, plan) {
    plan.sockets = options.sockets ?? cpuCount();
  },
});
