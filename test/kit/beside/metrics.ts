/** Compares the metrics of two servers after the same queries: their series and the values. */

/**
 * Maps a series to its value. The server's address is removed, and values are summed over labels that docs/coredns.md
 * lists as different.
 */
export type Series = ReadonlyMap<string, number>;

/** Reads `/metrics` from one of `hosts`. */
export async function readSeries(host: string, port: number): Promise<Series> {
  const text = await (await fetch(`http://${host}:${port}/metrics`)).text();
  const series = new Map<string, number>();
  for (const line of text.replaceAll(host, 'HOST').split('\n')) {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined || foreign.test(name)) continue;
    const key = `${name}{${sorted(labels)}}`;
    series.set(key, (series.get(key) ?? 0) + Number(value));
  }
  return series;
}

/** Describes each difference not listed in docs/coredns.md in a few words. Empty if there are none. */
export function seriesThatDiffer(theirs: Series, ours: Series, wording: string): string[] {
  const found: string[] = [];
  for (const key of new Set([...theirs.keys(), ...ours.keys()])) {
    const [a, b] = [theirs.get(key), ours.get(key)];
    if (a === b) continue;
    const rule = rules.find((each) => each.series.test(key) && each.is(a, b, wording));
    if (rule === undefined)
      found.push(`${key} ${a ?? 'is not there'}, ours ${b ?? 'is not there'}`);
  }
  return found;
}

/** Runtime metrics, which differ by nature. */
const foreign = /^(?:go|process|promhttp|nodejs|ndots)_/;

/** Sorts labels by name and leaves out the plugin label, which differs. */
function sorted(labels: string): string {
  return (labels.match(/\w+="(?:[^"\\]|\\.)*"/g) ?? [])
    .filter((label) => !label.startsWith('plugin='))
    .toSorted()
    .join(',');
}

interface Rule {
  readonly told: string;
  readonly series: RegExp;
  /** @param wording the Corefile */
  is(theirs: number | undefined, ours: number | undefined, wording: string): boolean;
}

const rules: readonly Rule[] = [
  { told: 'versions begin with ndots-', series: /^coredns_build_info/, is: () => true },
  {
    told: 'series in which nothing happened yet',
    series: /./,
    is: (theirs, ours) => theirs === undefined && ours === 0,
  },
  {
    told: 'replies are smaller, and take their own time',
    series: /_response_size_bytes_(?:bucket|sum)|duration_seconds_(?:bucket|sum)/,
    is: (theirs, ours) => theirs !== undefined && ours !== undefined,
  },
  {
    told: 'size of queries that no block takes',
    series: /_request_size_bytes_(?:bucket|sum)\{.*zone="dropped"/,
    is: (theirs, ours) => theirs !== undefined && ours !== undefined,
  },
  {
    told: 'plugins of blocks with several zones',
    series: /^coredns_plugin_enabled/,
    is: (theirs, ours) => theirs === undefined && ours === 1,
  },
  {
    told: 'types that rewrite changes',
    series: /^coredns_dns_requests_total/,
    is: (_theirs, _ours, wording) => /rewrite (?:stop |continue )?type /.test(wording),
  },
  {
    told: 'lookups of the targets of rewrite cname',
    series: /^coredns_dns_re(?:quest|sponse)s?_/,
    is: (theirs, ours, wording) =>
      (theirs ?? 0) < (ours ?? 0) && /rewrite (?:stop |continue )?cname /.test(wording),
  },
  // CoreDNS sends itself a query for the target of a wildcard in the same zone. A few queries in each batch trigger
  // this.
  ...[
    { series: /^coredns_dns_re(?:quest|sponse)s?_(?!size_bytes_sum)/, most: 3 },
    { series: /^coredns_dns_request_size_bytes_sum/, most: 3 * 300 },
  ].map(({ series, most }): Rule => ({
    told: 'lookups of alias targets below a wildcard of the zone',
    series,
    is: (theirs = 0, ours = 0, wording) =>
      theirs > ours && theirs - ours <= most && /\b(?:file|auto|secondary) /.test(wording),
  })),
  {
    told: 'the version from the start on',
    series: /^coredns_reload_version_info/,
    is: (theirs) => theirs === undefined,
  },
  {
    told: 'NXDOMAIN in the cache holds for the name',
    series: /^coredns_cache_(?:hits|misses)_total|^coredns_cache_entries/,
    is: (theirs, ours) => theirs !== undefined || ours !== undefined,
  },
  {
    told: 'sockets towards upstreams; those of a policy that draws',
    series: /^coredns_proxy_(?:conn_cache|request_duration_seconds)/,
    is: () => true,
  },
  {
    told: 'hosts: of several files the one that was read last; /dev/null has no time',
    series: /^coredns_hosts_reload_timestamp_seconds/,
    is: (theirs, ours, wording) =>
      Math.abs(theirs! - ours!) < 0.001 || /\bhosts \/dev\/null/.test(wording),
  },
];
