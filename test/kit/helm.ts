/** A real helm, which is either the program in `HELM` or built from its public module. */
import { spawnSync } from 'node:child_process';
import { goProgram, isBuilt } from './go-program.ts';

const VERSION = 'v3.19.0';

/**
 * The reason why helm is not available without a build that takes minutes, or null if it is. Cluster tests build it.
 */
export const noHelm = (): string | null =>
  process.env['HELM'] !== undefined || isBuilt('helm', VERSION)
    ? null
    : 'needs helm: name it in HELM, or let npm run test:cluster or test:node build it';

/**
 * Builds helm if necessary, which takes eight minutes on two CPUs.
 * @throws if it cannot be built
 */
export const helmProgram = (): string =>
  process.env['HELM'] ?? goProgram('helm', 'helm.sh/helm/v3/cmd/helm', VERSION);

/**
 * Runs helm and returns its output.
 * @throws an error with helm's message if it fails
 */
export function helm(words: readonly string[], env: Record<string, string>): string {
  const { status, stdout, stderr } = spawnSync(helmProgram(), words, {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...env },
    timeout: 120_000,
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/**
 * The output of `helm template` for the chart with these values, parsed as YAML.
 * @throws an error with helm's message if it fails
 */
export function helmTemplate(values: object, name = 'dns', kubeVersion = '1.32'): string {
  const { status, stdout, stderr } = spawnSync(
    helmProgram(),
    [
      ...['template', name, 'deploy/helm/ndots', '--namespace', 'kube-system'],
      ...['--kube-version', kubeVersion, '--values', '-'],
    ],
    { input: JSON.stringify(values), encoding: 'utf8', timeout: 60_000 },
  );
  if (status !== 0) throw new Error(stderr);
  return stdout;
}
