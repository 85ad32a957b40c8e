/** A real helm: the program that `HELM` names, or one built from its public module. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const version = 'v3.19.0';

/** Where helm is; it is built once, which takes some minutes, and kept under `XDG_CACHE_HOME`. @throws if it cannot be built */
function helmProgram(): string {
  const given = process.env['HELM'];
  if (given !== undefined) return given;
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const folder = join(caches, 'ndots', `helm-${version}`);
  const program = join(folder, 'helm');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  console.error(`building helm ${version} (once, kept in ${folder})`);
  const { status } = spawnSync('go', ['install', `helm.sh/helm/v3/cmd/helm@${version}`], {
    env: { ...process.env, GOBIN: folder, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw new Error(`helm could not be built: go install ended with ${status}`);
  return program;
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
