import type { Plugin } from '../server/plugin.ts';
import { acl } from './acl/acl.ts';
import { any } from './any/any.ts';
import { autopath } from './autopath/autopath.ts';
import { bind } from './bind/bind.ts';
import { bufsize } from './bufsize/bufsize.ts';
import { cache } from './cache/cache.ts';
import { cancel } from './cancel/cancel.ts';
import { chaos } from './chaos/chaos.ts';
import { debug } from './debug/debug.ts';
import { erratic } from './erratic/erratic.ts';
import { errors } from './errors/errors.ts';
import { forward } from './forward/forward.ts';
import { header } from './header/header.ts';
import { health } from './health/health.ts';
import { hosts } from './hosts/hosts.ts';
import { kubernetes } from './kubernetes/kubernetes.ts';
import { loadbalance } from './loadbalance/loadbalance.ts';
import { local } from './local/local.ts';
import { log } from './log/log.ts';
import { loop } from './loop/loop.ts';
import { metadata } from './metadata/metadata.ts';
import { minimal } from './minimal/minimal.ts';
import { multisocket } from './multisocket/multisocket.ts';
import { nsid } from './nsid/nsid.ts';
import { prometheus } from './prometheus/prometheus.ts';
import { ready } from './ready/ready.ts';
import { reload } from './reload/reload.ts';
import { rewrite } from './rewrite/rewrite.ts';
import { root } from './root/root.ts';
import { template } from './template/template.ts';
import { timeouts } from './timeouts/timeouts.ts';
import { tls } from './tls/tls.ts';
import { view } from './view/view.ts';
import { whoami } from './whoami/whoami.ts';

/**
 * Every plugin, in the order of the chain (CoreDNS 1.14.7's): a query meets them from top to bottom, whatever the order of
 * the directives in the Corefile. Adding a plugin is one import and one line here.
 */
export const plugins: readonly Plugin[] = [
  root,
  metadata,
  cancel,
  timeouts,
  multisocket,
  reload,
  nsid,
  bufsize,
  bind,
  debug,
  ready,
  health,
  prometheus,
  errors,
  log,
  local,
  any,
  chaos,
  loadbalance,
  rewrite,
  autopath,
  acl,
  cache,
  header,
  tls,
  minimal,
  template,
  hosts,
  kubernetes,
  loop,
  forward,
  erratic,
  whoami,
  view,
];
