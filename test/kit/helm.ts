/** A real helm: the program that `HELM` names, or one built from its public module. */
import { spawnSync } from 'node:child_process';
import { goProgram, isBuilt } from './go-program.ts';

const VERSION = 'v3.19.0';

/** Why helm is not there without a build that takes minutes; null: it is. */
export const noHelm = (): string | null =>
  process.env['HELM'] !== undefined || isBuilt('helm', VERSION)
    ? null
    : 'needs helm: name it in HELM, or let npm run test:cluster build it';

/** Where helm is. @throws if it cannot be built */
const helmProgram = (): string =>
  process.env['HELM'] ?? goProgram('helm', 'helm.sh/helm/v3/cmd/helm', VERSION);

/** Runs helm and gives what it prints. @throws with what it complains of */
export function helm(words: readonly string[], env: Record<string, string>): string {
  const { status, stdout, stderr } = spawnSync(helmProgram(), words, {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...env },
    timeout: 120_000,
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** What `helm template` makes of the chart with these values: YAML. @throws with what helm complains of */
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
