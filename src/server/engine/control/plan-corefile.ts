/** Reads a Corefile and plans what to serve. */
import type { Log } from '../../base/log.ts';
import { Problem, Problems } from '../../base/problem.ts';
import type { ParseOutput } from '../../corefile/parse.ts';
import type { Syntax } from '../../corefile/syntax.ts';
import type { Corefile } from '../../corefile/corefile-tree.ts';
import {
  bindConfiguration,
  forWorkers,
  namesIn,
  type Configuration,
} from '../contract/configuration.ts';
import { planEndpoints, type EndpointPlan } from '../contract/endpoints.ts';
import type { Plugin } from '../contract/plugin.ts';
import { withinDescriptors } from './descriptor-shares.ts';
import { listenerShares } from './listener-shares.ts';

export interface CorefileParts {
  /** Loads the plugins for these directives, in chain order, or all plugins if no names are given. */
  readonly plugins: (names?: ReadonlySet<string>) => Promise<readonly Plugin[]>;
  /**
   * Reads and parses the Corefile. The syntaxes are used to improve the hints in problems.
   * @throws Problem if it cannot be read
   */
  readonly load: (syntaxes: readonly Syntax[]) => ParseOutput;
  /** Base directory for relative paths: the Corefile's directory. */
  readonly directory: string;
  readonly log: Log;
  /** The number of workers, at least one. The Corefile determines it at startup. */
  readonly workers: (configuration: Configuration) => number;
  /** Number of descriptors that the process may open, or undefined if no limit is known. */
  readonly descriptors?: number;
  /** Number of bytes that the process may use, or undefined if no limit is known. */
  readonly memory?: number;
}

export interface PlannedCorefile {
  /** In the form that workers bind. */
  readonly corefile: Corefile;
  /** The texts of the Corefile and its imports, by file name. */
  readonly texts: ReadonlyMap<string, string>;
  readonly configuration: Configuration;
  readonly endpoints: readonly EndpointPlan[];
  readonly workers: number;
}

/**
 * Reads and checks the Corefile, and logs any warnings.
 * @param mayBeEmpty true to allow a Corefile without server blocks. It is false for a reload, because a file is briefly
 * empty while it is being written
 * @throws Problems with all faults; Problem if it cannot be read
 */
export async function planCorefile(
  parts: CorefileParts,
  mayBeEmpty: boolean,
): Promise<PlannedCorefile> {
  const { directory, log, descriptors = Infinity, memory = Infinity } = parts;
  const { plugins, parsed } = await read(parts);
  const { corefile, texts } = parsed;
  const configuration = bindConfiguration(corefile, plugins);
  const workers = parts.workers(configuration);
  const shares = listenerShares(memory, workers);
  const planned = planEndpoints(configuration.blocks, directory, shares);
  const problems = [...parsed.problems, ...configuration.problems, ...planned.problems];
  if (corefile.blocks.length === 0 && !mayBeEmpty && problems.length === 0)
    problems.push(nothingToServe());
  const warnings = [...parsed.warnings, ...configuration.warnings];
  if (problems.length > 0) throw new Problems(problems, warnings);
  for (const warning of warnings) log.warning(warning.print());
  const { endpoints, warning } = withinDescriptors(planned.endpoints, workers, descriptors);
  if (warning !== null) log.warning(warning);
  return { corefile: forWorkers(corefile, plugins), texts, configuration, endpoints, workers };
}

/**
 * Loads the Corefile and the plugins it names. If something is wrong, loads all plugins, because they are needed for
 * hints.
 */
async function read({
  load,
  plugins: loadPlugins,
}: CorefileParts): Promise<{ plugins: readonly Plugin[]; parsed: ParseOutput }> {
  const parsed = load([]);
  if (parsed.problems.length === 0)
    return { parsed, plugins: await loadPlugins(namesIn(parsed.corefile)) };
  const plugins = await loadPlugins();
  return { plugins, parsed: load(plugins.map(({ syntax }) => syntax)) };
}

/**
 * Returns the problem for an empty Corefile. A file is briefly empty while it is being rewritten, and this must not
 * stop the service.
 */
function nothingToServe(): Problem {
  return new Problem({
    code: 'nothing-to-serve',
    text: 'The Corefile contains no server block',
    hint: 'It may have been read while it was being written.',
    remedy:
      'Write it to another file, rename that file, and reload. To serve nothing, stop the server.',
  });
}
