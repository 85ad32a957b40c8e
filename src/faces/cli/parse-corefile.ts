/** Parsing a Corefile as `ndots serve` does. */
import { globSync } from 'node:fs';
import { FILE_MAX, readFileText } from '../../server/base/read-file.ts';
import { builtInCorefile, emptyCorefile } from '../../server/corefile/empty.ts';
import { parseCorefile, type ParseInput, type ParseOutput } from '../../server/corefile/parse.ts';
import { directiveNames, external } from '../../server/plugins/order.ts';

/** A Corefile and what parsing it depends on. */
export type CorefileText = Pick<ParseInput, 'file' | 'text' | 'dnsPort' | 'env' | 'syntaxes'>;

/** Parses a Corefile of this machine, with ndots's plugins, and reads its imports from files. */
export function parseCorefileText(corefile: CorefileText): ParseOutput {
  return parseCorefile({
    ...corefile,
    directives: directiveNames,
    external,
    readFile: (path) => readFileText(path, FILE_MAX.corefile),
    glob: (pattern) => globSync(pattern).toSorted(),
  });
}

/**
 * The same for a server that starts: a Corefile without a server block stands for the built-in one, as
 * in CoreDNS, and a warning says so.
 */
export function parseStartedCorefile(corefile: CorefileText): ParseOutput {
  const given = parseCorefileText(corefile);
  if (given.corefile.blocks.length > 0 || given.problems.length > 0) return given;
  const { file, dnsPort } = corefile;
  const builtIn = parseCorefileText({ ...corefile, text: builtInCorefile(dnsPort) });
  return { ...builtIn, warnings: [...given.warnings, emptyCorefile(file)] };
}
