import { builtins } from '../base/builtins.ts';
import type { Problem } from '../base/problem.ts';
import type { Directive, Property, ServerBlock, Token } from './corefile-tree.ts';

/**
 * Computes SHA-512 (hex) of the blocks' content. This is the words and the boundaries of lines and braces, but not
 * positions, white space or comments. Parts that cannot be read are represented by their problems, so that every edit
 * of a broken file changes the fingerprint.
 */
export function fingerprint(blocks: readonly ServerBlock[], problems: readonly Problem[]): string {
  const hash = builtins.crypto().createHash('sha512');
  const words = (kind: string, texts: readonly string[]): void => {
    hash.update(JSON.stringify([kind, ...texts]));
  };
  const line = (name: Token, { args, block }: Directive | Property): void => {
    words('line', [name.text, ...args.map(({ text }) => text)]);
    if (block === null) return;
    words('open', []);
    for (const property of block) line(property.name, property);
    words('close', []);
  };
  for (const { keys, directives } of blocks) {
    words(
      'block',
      keys.map(({ text, port }) => `${text} ${port}`),
    );
    for (const directive of directives) line(directive.at, directive);
  }
  for (const { message } of problems) words('problem', [message]);
  return hash.digest('hex');
}
