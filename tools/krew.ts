/** Generates the manifest that krew uses to install `kubectl ndots`. */
import { stringify } from 'yaml';

export interface ReleaseArchive {
  /** The platform in Go's notation: `linux`, `darwin`. */
  readonly os: string;
  /** The CPU in Go's notation: `amd64`, `arm64`. */
  readonly arch: string;
  readonly uri: string;
  readonly sha256: string;
}

export interface KrewRelease {
  /** The version without the leading `v`. */
  readonly version: string;
  readonly home: string;
  readonly archives: readonly ReleaseArchive[];
}

const description = `Explains every lookup of a pod: which queries its resolver sends for a name, and
why (trace), from inside the pod if necessary (exec); checks every
replica of the cluster's DNS (check); finds what is wrong in Corefiles and
manifests (lint) and in captures (doctor).
`;

const caveats = `Try:
  kubectl ndots trace redis.cache --from deploy/web
  kubectl ndots exec deploy/web -- trace redis.cache
  kubectl ndots check run --service kube-system/kube-dns
Completion of its words: kubectl ndots completion kubectl --help
`;

/** Returns YAML in the krew-index format (krew.googlecontainertools.github.com/v1alpha2). */
export function krewManifest({ version, home, archives }: KrewRelease): string {
  return stringify(
    {
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'ndots' },
      spec: {
        version: `v${version}`,
        homepage: home,
        shortDescription: 'Explain, check and trace cluster DNS',
        description,
        caveats,
        platforms: archives.map(({ os, arch, uri, sha256 }) => ({
          selector: { matchLabels: { os, arch } },
          uri,
          sha256,
          bin: 'bin/kubectl-ndots',
          files: [{ from: 'ndots/*', to: '.' }],
        })),
      },
    },
    { lineWidth: 0 },
  );
}
