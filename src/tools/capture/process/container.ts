/** Identifies a cgroup's container by its ID, which container runtimes include in the path. */

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
 * The container in a path under the cgroup root, or null if there is none. For nested containers, returns the innermost
 * one. Paths look like `…/kubepods-burstable-pod1a2b_….slice/cri-containerd-ID.scope` with the systemd driver and
 * `/kubepods/burstable/pod1a2b-…/ID` with cgroupfs.
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
