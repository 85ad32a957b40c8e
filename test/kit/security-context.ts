/** Converts a `securityContext` to container runtime settings, as the kubelet and containerd would. */
import { readFileSync } from 'node:fs';

/** Those fields of a pod's or container's `securityContext` that affect how its process starts. */
export interface SecurityContext {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
  readonly seccompProfile?: { readonly type: string; readonly localhostProfile?: string };
}

export interface Confinement {
  readonly uid: number;
  readonly gid: number;
  /** Capabilities such as `CAP_NET_RAW`, or null for all. This is also the bounding set. */
  readonly capabilities: readonly string[] | null;
  readonly noNewPrivileges: boolean;
  readonly readOnly: boolean;
  /** An OCI seccomp profile, or null for none. */
  readonly seccomp: object | null;
}

/** The capabilities of containers that do not list any, which are containerd's defaults (oci/spec.go). */
const defaults: readonly string[] =
  `CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE`.split(
    ' ',
  );

/**
 * @param imageUser the image's `USER`, as numbers
 * @param pod the pod's settings, which are the container's defaults
 */
export function confinementOf(
  imageUser: string,
  container: SecurityContext,
  pod: SecurityContext = {},
): Confinement {
  const [imageUid = '0', imageGid = '0'] = imageUser.split(':');
  const uid = container.runAsUser ?? pod.runAsUser;
  const gid = container.runAsGroup ?? pod.runAsGroup ?? (uid === undefined ? Number(imageGid) : 0);
  const privileged = container.privileged === true;
  const profile = container.seccompProfile ?? pod.seccompProfile;
  return {
    uid: uid ?? Number(imageUid),
    gid,
    capabilities: privileged ? null : capabilitiesOf(container),
    noNewPrivileges: !privileged && container.allowPrivilegeEscalation === false,
    readOnly: container.readOnlyRootFilesystem === true,
    seccomp: profile?.localhostProfile === undefined ? null : ours(profile.localhostProfile),
  };
}

function capabilitiesOf({ capabilities = {} }: SecurityContext): readonly string[] | null {
  const { add = [], drop = [] } = capabilities;
  if (add.includes('ALL')) return null;
  const kept = drop.includes('ALL') ? [] : defaults.filter((name) => !drop.includes(name));
  return [...new Set([...kept, ...add])].map((name) => `CAP_${name.replace(/^CAP_/, '')}`);
}

/** `ndots/serve.json` in the kubelet's directory corresponds to `deploy/seccomp/serve.json` here. */
const ours = (profile: string): object =>
  JSON.parse(readFileSync(profile.replace(/^.*\//, 'deploy/seccomp/'), 'utf8')) as object;
