/** The keys that a directive reads. */
import type { EtcdEndpoint, EtcdTlsFiles } from '../../etcd/endpoint.ts';
import { prefixRange, type KeyRange } from '../../etcd/messages.ts';
import { foldName, parseName } from '../../wire/name.ts';
import type { EtcdOptions } from './etcd-options.ts';
import { normalPrefix, pathOf } from './path.ts';

/** Plugin instances with equal plans share a connection and a data set. */
export interface EtcdPlan {
  readonly prefix: string;
  readonly endpoints: readonly EtcdEndpoint[];
  readonly tls: EtcdTlsFiles | null;
  readonly credentials: { readonly user: string; readonly password: string } | null;
  /** The zones' key paths, including everything below them. */
  readonly paths: readonly string[];
  readonly maxKeys: number;
  readonly maxValueBytes: number;
  /** Memory limit for all keys and values in bytes; null allows a share of the process's memory. */
  readonly maxBytes: number | null;
}

/** Gives the same result in the control part and in every worker, so that they all find the same data set. */
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

/** Removes paths below other paths. */
function outermost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)].toSorted();
  return all.filter((path) => !all.some((other) => other !== path && path.startsWith(`${other}/`)));
}

/**
 * Returns a plan's key ranges, which are each zone's own key and everything under it. They are not wider, because etcd
 * may not allow the user to read more.
 */
export function rangesOf({ prefix, paths }: EtcdPlan): KeyRange[] {
  return paths.flatMap((path) => {
    const key = Buffer.from(prefix + path, 'latin1');
    const below = prefixRange(Buffer.concat([key, Buffer.from('/')]));
    return key.length === 0 ? [below] : [{ key, end: null }, below];
  });
}
