/** `ndots lab`: reproduces network behaviour that affects DNS, on this machine. */
import type { Command } from '../command.ts';
import { parseLabOptions } from './lab-options.ts';

export const lab: Command = {
  name: 'lab',
  async run(words, io) {
    const options = parseLabOptions(words);
    switch (options.action) {
      case 'rules': {
        const { printRules } = await import('./lab-rules.ts');
        return printRules(options.rules, options.words, io);
      }
      case 'list': {
        const { listStories } = await import('./lab-list.ts');
        return listStories(options.run.output === 'json' ? 'json' : 'text', io);
      }
      case 'init': {
        const { printExampleStory } = await import('./lab-story.ts');
        return printExampleStory(io);
      }
      case 'run': {
        const { runStories } = await import('./lab-run.ts');
        return runStories(options, io);
      }
      case 'report': {
        const { reportFile } = await import('./lab-report.ts');
        return reportFile(options.words[0] ?? '', options.run, io);
      }
      case 'up':
      case 'exec':
      case 'down': {
        const { standingLab } = await import('./lab-up.ts');
        return standingLab(options, io);
      }
    }
  },
};
