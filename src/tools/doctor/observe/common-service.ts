/** Names that belong to one Service, such as those of the pods of a headless one. */

/** Returns the Service's name, or null if the names belong to several Services or to none. */
export function commonService(names: Iterable<string>): string | null {
  const services = new Set(Array.from(names, serviceOf));
  const [service = null] = services;
  return services.size === 1 ? service : null;
}

/** SERVICE.NAMESPACE.svc.DOMAIN without the names of a pod or port before it, or null. */
export function serviceOf(name: string): string | null {
  const labels = name.split('.');
  // A Service may be named svc itself.
  const at = labels.indexOf('svc', 2) - 2;
  return at < 0 || labels[at]!.startsWith('_') ? null : labels.slice(at).join('.');
}
