/** Identifies a cgroup's container: container runtimes put its ID into the path. */

import type { SeenContainer } from '../pair/asker.ts';

/** Prefixes of systemd scopes, by container runtime. */
const runtimes: Readonly<Record<string, string>> = {
  'cri-containerd': 'containerd',
  nerdctl: 'containerd',
  crio: 'cri-o',
  docker: 'docker',
  libpod: 'podman',
};

/**
 * The container in a path under the cgroup root; null: none. If containers are nested, returns the innermost.
 *
 * With the systemd driver: `…/kubepods-burstable-pod1a2b_….slice/cri-containerd-ID.scope`; with cgroupfs:
 * `/kubepods/burstable/pod1a2b-…/ID`.
 */
export function containerOf(path: string): SeenContainer | null {
  let found: SeenContainer | null = null;
  let podUid = '';
  for (const part of path.split('/')) {
    const [, uid] =
      /(?:^|-)pod([0-9a-f]{8}[-_][0-9a-f_-]{27}|[0-9a-f]{32})(?:\.slice)?$/.exec(part) ?? [];
    if (uid !== undefined) podUid = uid.replaceAll('_', '-');
    const [, runtime = '', id] = /^(?:([a-z-]+)-)?([0-9a-f]{64})(?:\.scope)?$/.exec(part) ?? [];
    if (id !== undefined) found = { id, runtime: runtimes[runtime] ?? '', podUid };
  }
  return found;
}
