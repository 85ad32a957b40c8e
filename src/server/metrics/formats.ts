/** The two text formats: Prometheus text 0.0.4 and OpenMetrics 1.0. */
export type TextFormat = 'text' | 'openmetrics';

/**
 * The text formats, and Prometheus's protocol buffers with each message preceded by its length. Only the latter can
 * represent native histograms.
 */
export type ExpositionFormat = TextFormat | 'protobuf';

/** The `Content-Type` of each format. */
export const contentTypes: Readonly<Record<ExpositionFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  protobuf:
    'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
};

/**
 * Returns the format that a client prefers according to its `Accept` header (RFC 9110, section 12.5.1). Wildcards, and
 * anything that is not understood, mean text. People use browsers and curl, and only scrapers request the other formats
 * by name.
 */
export function formatFor(acceptHeader: string | null | undefined): ExpositionFormat {
  let best: ExpositionFormat = 'text';
  let bestWeight = 0;
  for (const range of (acceptHeader ?? '').split(',')) {
    const [media = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const format = formatOf(media, (name) => parameterOf(parameters, name));
    const weight = weightOf(parameterOf(parameters, 'q'));
    if (format === null || weight <= bestWeight) continue;
    best = format;
    bestWeight = weight;
  }
  return best;
}

function formatOf(
  media: string,
  parameter: (name: string) => string | null,
): ExpositionFormat | null {
  if (media === 'application/vnd.google.protobuf') {
    const spoken =
      parameter('proto') === 'io.prometheus.client.metricfamily' &&
      parameter('encoding') === 'delimited';
    return spoken ? 'protobuf' : null;
  }
  const version = parameter('version');
  if (media === 'application/openmetrics-text') {
    return version === null || version === '1.0.0' ? 'openmetrics' : null;
  }
  if (media === 'text/plain') return version === null || version === '0.0.4' ? 'text' : null;
  return media === 'text/*' || media === '*/*' ? 'text' : null;
}

function parameterOf(parameters: readonly string[], name: string): string | null {
  const found = parameters.find((parameter) => parameter.startsWith(`${name}=`));
  return found === undefined ? null : found.slice(name.length + 1).replaceAll('"', '');
}

function weightOf(q: string | null): number {
  if (q === null) return 1;
  const weight = Number(q);
  return weight >= 0 && weight <= 1 ? weight : 0;
}
