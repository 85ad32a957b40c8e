/** What rules of a NetworkPolicy let pass. */
import { children, text, type JsonObject } from '../base/json-object.ts';

/** Whether a rule of egress names port 53, so that it is meant for DNS. */
export function namesDns(rule: JsonObject, protocol: 'UDP' | 'TCP'): boolean {
  return children(rule, 'ports').some(
    (each) => (text(each, 'protocol') || 'TCP') === protocol && each['port'] === 53,
  );
}

/** Whether a rule of egress lets packets to port 53 pass, to whomever. Without ports it lets all pass. */
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
