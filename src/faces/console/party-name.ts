/** Short display names of clients and servers. */
import type { Party } from '../../tools/watch/view.ts';

/** `shop/cart-7d4b9c`, or the address if nothing else is known. */
export function partyName({
  name,
  workload,
  namespace,
  address,
}: Pick<Party, 'name' | 'workload' | 'namespace' | 'address'>): string {
  if (name !== '') return name;
  return workload === '' ? address : `${namespace}/${workload}`;
}
