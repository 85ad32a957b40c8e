/** The containers in our manifests, with the fields needed to start them. */
import { parseAllDocuments } from 'yaml';
import type { SecurityContext } from './security-context.ts';

export interface OurContainer {
  /** `Deployment coredns, coredns` */
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[] | null;
  readonly args: readonly string[] | null;
  readonly security: SecurityContext;
  readonly podSecurity: SecurityContext;
}

interface Container {
  readonly name: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly securityContext?: SecurityContext;
}

interface Workload {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string };
  readonly spec?: {
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly Container[];
        readonly initContainers?: readonly Container[];
        readonly securityContext?: SecurityContext;
      };
    };
  };
}

/** The containers of all workloads in a YAML stream. */
export function containersOf(yaml: string): readonly OurContainer[] {
  return parseAllDocuments(yaml).flatMap((document) => {
    const { kind, metadata, spec } = (document.toJS() ?? {}) as Workload;
    const pod = spec?.template?.spec;
    return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])].map((container) => ({
      name: `${kind} ${metadata?.name}, ${container.name}`,
      image: container.image ?? '',
      command: container.command ?? null,
      args: container.args ?? null,
      security: container.securityContext ?? {},
      podSecurity: pod?.securityContext ?? {},
    }));
  });
}
