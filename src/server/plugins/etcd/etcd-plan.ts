/** The keys that a directive reads. */
import type { EtcdEndpoint, EtcdTlsFiles } from '../../etcd/endpoint.ts';
import { prefixRange, type KeyRange } from '../../etcd/messages.ts';
import { foldName, parseName } from '../../wire/name.ts';
import type { EtcdOptions } from './etcd-options.ts';
import { normalPrefix, pathOf } from './path.ts';

/** Instances of the plugin with an equal plan share one connection and one data set. */
export interface EtcdPlan {
  readonly prefix: string;
  readonly endpoints: readonly EtcdEndpoint[];
  readonly tls: EtcdTlsFiles | null;
  readonly credentials: { readonly user: string; readonly password: string } | null;
  /** The paths of the zones' keys: everything at and below them. */
  readonly paths: readonly string[];
  readonly maxKeys: number;
  readonly maxValueBytes: number;
  /** Bytes for all keys and values; null: a share of the process's memory. */
  readonly maxBytes: number | null;
}

/** The same in the control part and in every worker, so that both find the same data set. */
export function planEtcd(options: EtcdOptions, path: (file: string) => string): EtcdPlan {
  const { endpoints, credentials, maxKeys, maxValueBytes, maxBytes } = options;
  const file = (name: string): string => (name === '' ? '' : path(name));
  const { tls } = options;
  return {
    prefix: normalPrefix(options.path),
    endpoints,
    tls:
      tls === null
        ? null
        : {
            certificate: file(tls.certificate),
            key: file(tls.key),
            authority: file(tls.authority),
          },
    credentials,
    paths: outermost(options.zones.map((zone) => pathOf(foldName(parseName(zone))).path)),
    maxKeys,
    maxValueBytes,
    maxBytes,
  };
}

export function planKey(plan: EtcdPlan): string {
  return `etcd/${JSON.stringify(plan)}`;
}

/** The paths without those below another one. */
function outermost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)].toSorted();
  return all.filter((path) => !all.some((other) => other !== path && path.startsWith(`${other}/`)));
}

/**
 * The keys of a plan: for each zone its own key, and all below it. No wider, since etcd may let the
 * user read no more than that.
 */
export function rangesOf({ prefix, paths }: EtcdPlan): KeyRange[] {
  return paths.flatMap((path) => {
    const key = Buffer.from(prefix + path, 'latin1');
    const below = prefixRange(Buffer.concat([key, Buffer.from('/')]));
    return key.length === 0 ? [below] : [{ key, end: null }, below];
  });
}
