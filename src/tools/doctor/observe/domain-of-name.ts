/** Domains of names, as far as the names show them. */
import type { SearchDomains } from '../../capture/pair/search-walk.ts';

/** The domain that the name is likely to be registered under: its last two labels, without a final dot. */
export function registeredDomainOf(name: string): string {
  return name.slice(0, -1).split('.').slice(-2).join('.');
}

/** The name without its first label. */
export function parentOf(name: string): string {
  return name.slice(name.indexOf('.') + 1);
}

/** True for a name in the cluster's domain, and for a Service name in a domain that the capture does not show. */
export function isClusterName(
  { domains }: { readonly domains: SearchDomains },
  name: string,
): boolean {
  return domains.isOfCluster(name) || name.includes('.svc.');
}
