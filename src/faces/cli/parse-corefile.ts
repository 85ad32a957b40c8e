/** Parses a Corefile like `ndots serve`. */
import { globSync } from 'node:fs';
import { FILE_MAX, readFileText } from '../../server/base/read-file.ts';
import { builtInCorefile, emptyCorefile } from '../../server/corefile/empty.ts';
import { parseCorefile, type ParseInput, type ParseOutput } from '../../server/corefile/parse.ts';
import { directiveNames, external } from '../../server/plugins/order.ts';

/** A Corefile and the settings that affect how it is parsed. */
export type CorefileText = Pick<ParseInput, 'file' | 'text' | 'dnsPort' | 'env' | 'syntaxes'>;

/** Parses a Corefile with ndots' plugins. Imported files are read from this machine. */
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
 * Parses a Corefile for a server to start with. As in CoreDNS, one without server blocks is replaced by the built-in
 * Corefile, with a warning.
 */
export function parseStartedCorefile(corefile: CorefileText): ParseOutput {
  const given = parseCorefileText(corefile);
  if (given.corefile.blocks.length > 0 || given.problems.length > 0) return given;
  const { file, dnsPort } = corefile;
  const builtIn = parseCorefileText({ ...corefile, text: builtInCorefile(dnsPort) });
  return { ...builtIn, warnings: [...given.warnings, emptyCorefile(file)] };
}
