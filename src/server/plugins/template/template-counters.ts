/** Metrics for `template`. */
import type { Counter, Registry } from '../../metrics/registry.ts';
import { className, typeName } from '../../wire/iana.ts';
import type { Route } from '../../transport/query.ts';
import type { RecordFailure, RecordTemplate } from './record-template.ts';
import { perRoute } from '../../engine/contract/per-route.ts';

const queryLabels = ['server', 'zone', 'view', 'class', 'type'] as const;
const failureLabels = [...queryLabels, 'section', 'template'] as const;

/**
 * The metrics for one template. Classes and types without a name share the empty label, so that clients cannot create
 * many labels.
 */
export class TemplateCounters {
  readonly #matches;
  readonly #templateFailures;
  readonly #recordFailures;
  /** By route, then by a key that combines zone, class and type. */
  readonly #counters = perRoute(() => new Map<string, Map<number, Counter>>());

  constructor(metrics: Registry) {
    this.#matches = metrics.counter(
      'coredns_template_matches_total',
      'Counter of template regex matches.',
      queryLabels,
    );
    this.#templateFailures = metrics.counter(
      'coredns_template_template_failures_total',
      'Counter of go template failures.',
      failureLabels,
    );
    this.#recordFailures = metrics.counter(
      'coredns_template_rr_failures_total',
      'Counter of mis-templated RRs.',
      failureLabels,
    );
  }

  matched(route: Route, zone: string, qclass: number, type: number): void {
    const byZone = this.#counters(route);
    let byKind = byZone.get(zone);
    if (byKind === undefined) byZone.set(zone, (byKind = new Map()));
    const key = qclass * 0x10000 + type;
    let counter = byKind.get(key);
    if (counter === undefined) {
      counter = this.#matches.with(
        route.server,
        zone,
        route.view,
        classLabel(qclass),
        typeLabel(type),
      );
      if (byKind.size < KINDS_MAX) byKind.set(key, counter);
    }
    counter.add(1);
  }

  failed(
    route: Route,
    zone: string,
    qclass: number,
    type: number,
    template: RecordTemplate,
    { by }: RecordFailure,
  ): void {
    const family = by === 'template' ? this.#templateFailures : this.#recordFailures;
    const { section, text } = template;
    family
      .with(route.server, zone, route.view, classLabel(qclass), typeLabel(type), section, text)
      .add(1);
  }
}

/** Maximum number of handles cached per route and zone; types beyond that are counted without one. */
const KINDS_MAX = 200;

function classLabel(qclass: number): string {
  const name = className(qclass);
  return name.startsWith('CLASS') ? '' : name;
}

function typeLabel(type: number): string {
  if (type === 0) return 'None';
  if (type === 0xffff) return 'Reserved';
  const name = typeName(type);
  return name.startsWith('TYPE') ? '' : name;
}
