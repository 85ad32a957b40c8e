/** Colour options, shared by all commands that print text. */
import { flag, one, type One, type Switch } from './option.ts';
import { choice } from './option-values.ts';

const whens = ['auto', 'always', 'never'] as const;

export interface ColourOptions {
  readonly color: (typeof whens)[number] | null;
  readonly noColor: boolean;
}

export const colourOptions: {
  readonly color: One<(typeof whens)[number]>;
  readonly noColor: Switch;
} = {
  color: one('--color', choice('WHEN', whens), 'use colors: auto, always or never'),
  noColor: flag('--no-color', 'same as --color never'),
};
