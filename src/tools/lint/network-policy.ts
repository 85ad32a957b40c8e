/** Finds the DNS packets that a NetworkPolicy allows. */
import { children, text, type JsonObject } from '../../server/base/json-object.ts';

/** True if an egress rule mentions port 53 and therefore applies to DNS. */
export function namesDns(rule: JsonObject, protocol: 'UDP' | 'TCP'): boolean {
  return children(rule, 'ports').some(
    (each) => (text(each, 'protocol') || 'TCP') === protocol && each['port'] === 53,
  );
}

/** True if an egress rule allows packets to port 53 at any destination. A rule without ports allows all of them. */
export function allowsDns(rule: JsonObject, protocol: 'UDP' | 'TCP'): boolean {
  const ports = children(rule, 'ports');
  if (ports.length === 0) return true;
  return ports.some((each) => {
    if ((text(each, 'protocol') || 'TCP') !== protocol) return false;
    const { port, endPort } = each;
    if (port === undefined || port === 53 || port === 'dns' || port === 'dns-tcp') return true;
    return typeof port === 'number' && typeof endPort === 'number' && port <= 53 && endPort >= 53;
  });
}
