/** `ndots lab`: what happens below DNS. */
import type { Command } from './command.ts';
import { parseLabOptions } from './lab-options.ts';

/** The verb `lab`. */
export const lab: Command = {
  name: 'lab',
  async run(words, io) {
    const options = parseLabOptions(words);
    switch (options.action) {
      case 'rules': {
        const { printRules } = await import('./lab-rules.ts');
        return printRules(options.rules, options.words, io);
      }
    }
  },
};
