/**
 * Rules for the results of `ndots check serve`, which show the clients' view, and for gaps in the checks. They do not
 * fire unless a check has been scraped.
 */
import { alert, promiseRules, type Rule, type ServicePromise } from './rule.ts';

/** Counts by kind of check over all targets and checkers, so that restarting a checker does not reset them. */
const promise: ServicePromise = {
  name: 'check',
  budget: 0.001,
  bad: (window) => `sum by (cluster, check) (1 - avg_over_time(ndots_check_up[${window}]))`,
  all: (window) => `count by (cluster, check) (avg_over_time(ndots_check_up[${window}]))`,
  what: 'the time the check {{ $labels.check }} has failed',
};

const checkAlerts: readonly Rule[] = [
  alert(
    'DNSCheckBlind',
    'warning',
    // A target has disappeared, a check cannot complete, or the checks in Kuberhealthy's objects are not run.
    [
      '(count by (cluster) (max_over_time(ndots_check_checks[1d])) unless count by (cluster) (ndots_check_checks))',
      '(max by (cluster) (min by (cluster, check) (avg_over_time(ndots_check_state{state="unknown"}[15m]))) > 0.9)',
      '(sum by (cluster) (kuberhealthy_controller_leader) == 0)',
    ].join(' or '),
    '10m',
    'The state of DNS is unknown',
    'The checks are not running, or cannot complete. Until they do, the absence of other check alerts does not mean that DNS works.',
  ),
  alert(
    'DNSCheckTargetDown',
    'critical',
    'max by (cluster, check, title, target) (ndots_check_up) == 0',
    '1m',
    '{{ $labels.check }} fails at {{ $labels.target }}',
    'Every checker sees the failure. Clients that reach this target wait for their timeout.',
  ),
];

/** Rule groups in Prometheus format. */
export const checkGroups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] = [
  { name: 'dns-check', rules: [...promiseRules(promise), ...checkAlerts] },
];
