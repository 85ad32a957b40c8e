/**
 * `critical`: programs fail or wait for seconds. `warning`: it costs, or will hurt. `info`: worth
 * knowing.
 */
export type Severity = 'critical' | 'warning' | 'info';
