/** The metric for enabled plugins. */
import type { KeptAcrossReloads } from '../../engine/contract/control-context.ts';
import type { Family, Gauge, Registry } from '../../metrics/registry.ts';

type Labels = readonly ['server', 'zone', 'view', 'name'];

/**
 * Maintains `coredns_plugin_enabled` across reloads. The new configuration adds its label sets before the old one
 * removes its own. A label set is therefore removed only if no configuration uses it.
 */
export class Enabled implements KeptAcrossReloads {
  readonly #family: Family<Labels, Gauge>;
  readonly #holders = new Map<
    string,
    { readonly labels: [string, string, string, string]; count: number }
  >();

  constructor(metrics: Registry) {
    this.#family = metrics.gauge(
      'coredns_plugin_enabled',
      'A metric that indicates whether a plugin is enabled on per server and zone basis.',
      ['server', 'zone', 'view', 'name'],
    );
  }

  /** @returns a function that releases it */
  hold(...labels: [string, string, string, string]): () => void {
    const key = labels.join('\n');
    const holder = this.#holders.get(key) ?? { labels, count: 0 };
    this.#holders.set(key, holder);
    holder.count++;
    this.#family.with(...labels).set(1);
    return () => {
      if (--holder.count > 0) return;
      this.#holders.delete(key);
      this.#family.remove(...labels);
    };
  }

  close(): void {
    for (const { labels } of this.#holders.values()) this.#family.remove(...labels);
    this.#holders.clear();
  }
}
