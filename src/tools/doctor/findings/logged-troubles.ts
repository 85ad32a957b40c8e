/** Failures in a server's log, with one finding for each cause and upstream. */
import { printHostPort } from '../../../server/base/ip.ts';
import { RCODE } from '../../../server/wire/iana.ts';
import type { ContactFailure } from '../observe/contacts.ts';
import { certificateText, DNS_OVER_TLS, failedContacts } from '../observe/failed-contacts.ts';
import type { LoggedCause, LoggedTrouble } from '../observe/logged-causes.ts';
import type { Observations } from '../observe/observations.ts';
import { type FindingKind, type FoundCause } from './finding.ts';
import type { Severity } from '../severity.ts';
import { listed } from '../texts.ts';
import { MAX_LOGGED_UPSTREAMS } from '../thresholds/errors.ts';
import { MIN_CASES, RARE_SHARE } from '../thresholds/evidence.ts';
import { MANY_LINES, MANY_LINES_A_MINUTE } from '../thresholds/lateness.ts';
import { LOST_CONNECTIONS } from '../thresholds/transport.ts';

interface CauseText extends Pick<FindingKind, 'code' | 'title' | 'name'> {
  readonly causes: readonly LoggedCause[];
  /** The highest severity, critical if omitted. For failed queries, the severity depends on their number. */
  readonly severity?: Severity;
  readonly why: string;
  readonly fix: readonly string[];
  /** @param upstream as ndots query accepts it @param name one that failed */
  prove(upstream: string, name?: string): string;
  readonly disproved: string;
}

const asked = (upstream: string, name = 'NAME'): string =>
  `ndots query ${name} @${upstream === '' ? 'UPSTREAM' : upstream}`;
const getLog = 'kubectl -n kube-system logs -l k8s-app=kube-dns --timestamps --prefix --previous';

const texts: readonly CauseText[] = [
  {
    causes: ['timeout'],
    code: 'ND4008',
    title: 'An upstream server does not answer',
    name: 'upstream servers that are silent',
    why: 'The server forwards queries, but no reply comes back in time. The upstream is down or overloaded, or something in between drops the packets (a firewall, a security group, a packet limit). Clients wait for seconds and then get SERVFAIL.',
    fix: [
      'Query the upstream from the node and from a DNS pod. If only the pod gets no reply, check NetworkPolicies and the pod network’s source NAT.',
      'If UDP fails but TCP works, look for a packet limit or a firewall. If only large answers fail, check the path MTU, and set bufsize 1232 in the Corefile.',
      'List more than one upstream in forward, so that health checks can skip the silent one.',
    ],
    prove: (upstream, name) =>
      `run ${asked(upstream, name)}, then the same with +tcp, both in a DNS pod and on its node`,
    disproved: 'the upstream answers every query that is sent from the DNS pod',
  },
  {
    causes: ['refused'],
    code: 'ND4011',
    title: 'Nothing listens at the address of an upstream',
    name: 'upstreams that refuse connections',
    why: 'The host reports that no program has the port open. The upstream has stopped or moved, or it listens only on another address or protocol (TCP, TLS). Or a proxy in front of a Service without endpoints rejects the packets.',
    fix: [
      'Check whether the upstream is running, and on which address and port it listens (ss -lntu on its host).',
      'If the address belongs to a Service, check whether it has ready endpoints.',
      'Correct the address in forward, or in the resolv.conf that forward refers to.',
    ],
    prove: asked,
    disproved: 'the upstream answers at that address and port',
  },
  {
    causes: ['unreachable'],
    code: 'ND4012',
    title: 'There is no route to an upstream',
    name: 'upstreams without a route',
    why: 'The node’s kernel or a router has no route to the address. Typical causes are a missing route or default gateway, an IPv6 upstream on a node without IPv6, or a host on the same network that is down.',
    fix: [
      'Run ip route get ADDRESS on the node. If it prints no route, the route is missing.',
      'On nodes without IPv6, remove IPv6 addresses from forward and from the resolv.conf that it refers to.',
      'If the CNI or the nodes were changed, check whether pods reach anything outside the cluster.',
    ],
    prove: (upstream, name) =>
      `run ip route get ${upstream === '' ? 'ADDRESS' : hostOf(upstream)} on the node, then ${asked(upstream, name)}`,
    disproved: 'ip route get shows a route, and the address answers a ping or a query',
  },
  {
    causes: ['forbidden-to-send'],
    code: 'ND4013',
    title: 'The node’s kernel refuses to send queries to an upstream (operation not permitted)',
    name: 'packets that the node’s own kernel refuses',
    why: 'The kernel refuses to send the packet. An iptables or nftables rule in OUTPUT or a CNI BPF program drops it, or connection tracking has no room for a new entry (nf_conntrack: table full).',
    fix: [
      'Run dmesg | grep nf_conntrack on the node. If the table is full, raise net.netfilter.nf_conntrack_max.',
      'Look for rules in OUTPUT (iptables-save | grep -w DROP, nft list ruleset), and for NetworkPolicies that restrict the DNS pods’ egress to port 53 (UDP and TCP).',
      'Run conntrack -S. Rising insert_failed and drop counters show a full or contended table.',
    ],
    prove: (upstream, name) =>
      `on the node, run conntrack -S and iptables -L OUTPUT -v -n before and after ${asked(upstream, name)}`,
    disproved:
      'the counters of DROP rules and connection tracking do not change while the errors continue',
  },
  {
    causes: ['unparsable'],
    code: 'ND4014',
    title: 'An upstream’s replies cannot be parsed',
    name: 'upstreams whose replies are cut off or malformed',
    why: 'A reply is not a complete DNS message. It was cut off without the TC flag, is longer than the announced buffer (overflowing header size), or was damaged by something in transit that rewrites DNS. The server drops it and answers SERVFAIL.',
    fix: [
      'Set bufsize 1232 in the Corefile, so that upstreams send no larger UDP replies and use TCP instead.',
      'In forward, remove prefer_udp or add force_tcp. If the errors stop, something in between alters UDP replies.',
      'Query the upstream directly for the names that fail, and report its replies to its operator.',
    ],
    prove: (upstream, name) =>
      `run ${asked(upstream, name)} +bufsize=1232, then the same with +bufsize=4096`,
    disproved: 'the replies for these names can be parsed when the upstream is queried directly',
  },
  {
    causes: ['crowded'],
    code: 'ND4015',
    title: 'forward has reached its limit on concurrent queries (max_concurrent)',
    name: 'a limit on concurrent queries that is reached',
    why: 'As many queries are waiting for upstreams as max_concurrent allows, so further ones are refused at once. Either upstreams answer slowly or not at all, or a forwarding loop or a flood sends far more queries than usual.',
    fix: [
      'Look for slow or silent upstreams first, since the limit only shows that replies are missing. Raising it costs about 2 KB of memory per waiting query.',
      'If upstreams are fast, set max_concurrent to the number of queries per second times the slowest answer time in seconds.',
      'Find the busiest clients with ndots capture -o clients.',
    ],
    prove: () =>
      'curl -s DNS-POD:9153/metrics | grep -E "max_concurrent_rejects|forward_request_duration_seconds_sum"',
    disproved: 'coredns_forward_max_concurrent_rejects_total does not rise',
  },
  {
    causes: ['certificate', 'handshake'],
    code: 'ND4016',
    title: 'The TLS connection to an upstream fails because of its certificate or protocol',
    name: 'upstreams with failing TLS handshakes',
    why: 'The TLS handshake with the upstream fails. Its certificate has expired, is signed by an untrusted authority or does not match tls_servername, or the port does not speak TLS.',
    fix: [
      'If the certificate is expired or not yet valid, renew it, and check the node’s clock.',
      'If the authority is unknown, specify the CA in forward (tls CERT KEY CA, or tls CA), or use the upstream’s public name.',
      'If the certificate is for another name, set tls_servername to a name in the certificate.',
      'If the reply is not a TLS handshake, check the port (853 for DNS over TLS) and whether a proxy answers instead.',
    ],
    prove: (upstream) =>
      `openssl s_client -connect ${upstream === '' ? 'UPSTREAM:853' : upstream} -servername NAME </dev/null | openssl x509 -noout -dates -subject -ext subjectAltName`,
    disproved: 'openssl verifies the certificate with the CA and the name that forward uses',
  },
  {
    causes: ['unhealthy'],
    code: 'ND4017',
    title: 'forward considers all its upstreams down (no healthy proxies)',
    name: 'a forward without a healthy upstream',
    why: 'Health checks failed for all upstreams, so queries are not forwarded, or only at random. The cause is in the upstreams or on the network path to them, and other errors in the log often show it.',
    fix: [
      'Query each upstream in forward from a DNS pod.',
      'If upstreams answer other queries but not the health check (a query for the root’s NS records), set health_check 5s domain NAME with a name that they serve.',
    ],
    prove: () => 'curl -s DNS-POD:9153/metrics | grep -E "healthcheck_(failures|broken)_total"',
    disproved: 'coredns_forward_healthcheck_broken_total does not rise',
  },
  {
    causes: ['closed'],
    code: 'ND4018',
    title: 'An upstream closes connections before it answers',
    name: 'upstreams that close connections',
    why: 'The upstream, or a load balancer or firewall in front of it, closes TCP or TLS connections while queries are in flight. It restarts, limits connections or the number of queries on each, or closes idle connections sooner than the server expects (expire).',
    fix: [
      'In forward, set expire (default 10s) below the idle time-out of the upstream, or of the load balancer in front of it.',
      'Check whether the upstream accepts TCP at all, and how many connections it allows from one client.',
      'If force_tcp is not needed, remove it, since UDP has no connections to lose.',
    ],
    prove: (upstream, name) => `${asked(upstream, name)} +tcp`,
    disproved:
      'queries over TCP from the DNS pod are answered, even some seconds after the connection was opened',
  },
  {
    causes: ['descriptors'],
    code: 'ND7005',
    title: 'The DNS server has run out of file descriptors or ports',
    name: 'a server without free file descriptors or ports',
    why: 'Each query that waits for an upstream needs a socket, and each socket needs a file descriptor and a source port. The limit is reached because the process’s limit is too low, or because far more queries than usual wait for upstreams that do not answer.',
    fix: [
      'Look for slow or silent upstreams first, since answered queries release their sockets.',
      'Raise the process’s limit (ulimit -n, or the container runtime’s LimitNOFILE), and net.ipv4.ip_local_port_range.',
      'Set max_concurrent in forward to limit the waiting queries.',
    ],
    prove: () =>
      'on the DNS pod’s node, compare ls /proc/PID/fd | wc -l with grep "open files" /proc/PID/limits, and run ss -s',
    disproved:
      'the process has far fewer descriptors open than its limit while the errors continue',
  },
  {
    causes: ['other'],
    code: 'ND4019',
    title: 'Queries fail for a reason that the log states',
    name: 'other errors in logs',
    severity: 'warning',
    why: 'The server logged why it could not answer. doctor does not recognise this message, so see the documentation of the server or of the plugin that it mentions.',
    fix: [
      'Read the error message to see which operation failed, and query the upstream directly for one of the names.',
    ],
    prove: asked,
    disproved: 'the names are answered now, and no such line is logged any more',
  },
  {
    causes: ['api-rights'],
    code: 'ND5007',
    title: 'The DNS server lacks permission to read its objects from the API server',
    name: 'missing permissions of the DNS server',
    why: 'The API server recognises the DNS server but refuses its lists and watches (RBAC), or rejects its token. Cluster names are then missing or out of date, and a newly started DNS pod does not become ready.',
    fix: [
      'Restore the ClusterRole and ClusterRoleBinding system:coredns. The role allows list and watch for services, endpoints, namespaces, pods, and endpointslices in discovery.k8s.io.',
      'If the error is Unauthorized, check whether the pod has its service account and a token (automountServiceAccountToken), and whether the API server’s signing key changed. Then restart the pod.',
    ],
    prove: () =>
      'kubectl auth can-i list endpointslices.discovery.k8s.io --as=system:serviceaccount:kube-system:coredns',
    disproved: 'kubectl auth can-i prints yes for list and watch on all these resources',
  },
  {
    causes: ['api-away', 'unsynced'],
    code: 'ND5001',
    title: 'Cluster names fail because the DNS pods cannot reach the API server',
    name: 'DNS pods without a connection to the API server',
    why: 'The DNS pods cannot list or watch Services and EndpointSlices. The API server is down or overloaded, its Service (kubernetes) does not reach it from this node, or a NetworkPolicy or certificate blocks the connection. Known names stay unchanged, but changes are missed, and a new DNS pod does not become ready.',
    fix: [
      'Check whether the API server answers (kubectl get --raw /readyz).',
      'On the DNS pod’s node, run curl -k https://KUBERNETES-SERVICE-IP:443/healthz. If that fails, check kube-proxy on this node and the CNI.',
      'If the error mentions x509, the CA in the service account does not match the API server’s certificate. Restart the pods after the CA has been rotated.',
    ],
    prove: () =>
      'kubectl -n kube-system logs DNS-POD --timestamps | grep -iE "failed to (list|watch)|API server"',
    disproved: 'no such lines are logged any more, and new Services resolve',
  },
  {
    causes: ['bind'],
    code: 'ND5008',
    title: 'The DNS server cannot open its port',
    name: 'a port that is in use or not permitted',
    why: 'Another program uses the port, or the container may not bind ports below 1024. With hostNetwork, that program can be systemd-resolved, dnsmasq or another DNS server on the node. It can also be a second server block that binds the same address. The server exits and is restarted repeatedly.',
    fix: [
      'If the error is "address already in use", ss -lnup "sport = :53" on the node shows the program. Stop it, or make the server use other addresses (bind).',
      'If the error is "permission denied", add the capability NET_BIND_SERVICE to the container, or listen on a port above 1023.',
    ],
    prove: () =>
      'run ss -lntup "sport = :53" in the pod’s network namespace (on the node for hostNetwork)',
    disproved: 'no other program uses the port, and the server starts',
  },
  {
    causes: ['panic'],
    code: 'ND5004',
    title: 'A DNS server panics because of a bug',
    name: 'bugs in the server itself',
    why: 'The server hit a bug. The current query is lost, or the process exits and is restarted.',
    fix: [
      'Keep the log with the stack (errors { stacktrace } in the Corefile), and search the server’s issues for its first lines.',
      'Update the server. If a query triggers it, block its name or type until then (with the acl or template plugin).',
    ],
    prove: () => 'curl -s DNS-POD:9153/metrics | grep coredns_panics_total',
    disproved: 'coredns_panics_total stays 0',
  },
  {
    causes: ['configuration'],
    code: 'ND1001',
    title: 'The configuration has errors that ndots lint reports',
    name: 'errors in the configuration',
    why: 'The server could not read its Corefile and did not start.',
    fix: [
      'Correct the line in the message. ndots lint Corefile shows all errors at once, with fixes.',
    ],
    prove: () => 'ndots lint Corefile',
    disproved: 'the server starts with this Corefile',
  },
  {
    causes: ['reload'],
    code: 'ND1002',
    title: 'Not all DNS pods run the current Corefile',
    name: 'configurations that were not loaded',
    severity: 'warning',
    why: 'A changed Corefile could not be loaded. The server still uses the previous one and will not start with the new one after a restart.',
    fix: [
      'Run ndots lint on the Corefile to find the error, and correct it before a DNS pod restarts.',
    ],
    prove: () => 'curl -s DNS-POD:9153/metrics | grep coredns_reload_failed_total',
    disproved:
      'coredns_reload_failed_total does not rise, and all replicas show one coredns_reload_version_info',
  },
  {
    causes: ['not-ready'],
    code: 'ND5002',
    title: 'DNS pods are not ready',
    name: 'DNS pods that do not run',
    severity: 'warning',
    why: 'A plugin has not finished starting, so the pod gets no queries through the Service. For the kubernetes plugin, this means that it has not yet received its first lists from the API server.',
    fix: [
      'If this lasts for more than a minute, look for earlier plugin/kubernetes errors (permissions, API server), and run kubectl -n kube-system describe pod.',
    ],
    prove: () => 'curl -s DNS-POD:8181/ready',
    disproved: '/ready returns 200',
  },
  {
    causes: ['stalled'],
    code: 'ND7006',
    title: 'A DNS server is too busy to answer its own health check',
    name: 'a server too busy to answer its own health check',
    severity: 'warning',
    why: 'The server’s own health request took longer than a second, or a worker was blocked for seconds. It gets too little CPU (throttled by its limit, or a busy node), or has too much to do. Queries are then late, too.',
    fix: [
      'Raise or remove the DNS pods’ CPU limit, since throttling stops them for up to 100 ms at a time.',
      'Add replicas, or a cache on each node (NodeLocal DNSCache, ndots node-cache).',
    ],
    prove: () =>
      'run curl -s DNS-POD:9153/metrics | grep coredns_health_request, and check nr_throttled in the pod’s /sys/fs/cgroup/cpu.stat',
    disproved: 'nr_throttled does not rise, and no such line is logged under load',
  },
  {
    causes: ['node-rules'],
    code: 'ND5009',
    title: 'The node cache cannot set up its interface or rules',
    name: 'failing node cache rules',
    severity: 'warning',
    why: 'NodeLocal DNSCache could not add or check the rules that keep its queries out of connection tracking, or its interface. Another program holds the lock or rewrites the tables, or the container lacks NET_ADMIN.',
    fix: [
      'If the error is occasional, ignore it. The rules are checked again a minute later.',
      'If it persists, check that the container has NET_ADMIN and the xtables lock mounted (/run/xtables.lock), and that its iptables mode (legacy, nft) matches the node’s.',
    ],
    prove: () =>
      'run iptables-save -t raw | grep NOTRACK and ip addr show nodelocaldns on the node',
    disproved: 'the rules and the interface exist',
  },
  {
    causes: ['stopped'],
    code: 'ND5010',
    title: 'A DNS server was stopped',
    name: 'a server that was stopped',
    severity: 'info',
    why: 'The process received a signal to terminate, as in a rollout, an eviction, or after a failed liveness probe.',
    fix: [
      'If no change explains it, check with kubectl -n kube-system describe pod whether kubelet stopped the pod (liveness probe, memory), and with kubectl get events why.',
    ],
    prove: () => getLog,
    disproved: 'a rollout at that time explains it',
  },
];

/** These codes are about failed queries. The others are about the server. */
const OF_QUERIES = /^ND(?:4\d{3}|7005)$/;

export const loggedTroubles: readonly FindingKind[] = texts.map((text) => ({
  ...text,
  inCapture: (observed) => {
    const { list } = observed.logged;
    // A server without permissions also starts unsynced.
    const refused = list.some(({ cause }) => cause === 'api-rights');
    const found = list
      .filter(({ cause }) => text.causes.includes(cause) && !(refused && cause === 'unsynced'))
      .toSorted((one, other) => other.count - one.count);
    const rest = found.slice(MAX_LOGGED_UPSTREAMS);
    return [
      ...found
        .slice(0, MAX_LOGGED_UPSTREAMS)
        .map((trouble, index) => findingOf(text, trouble, index === 0 ? rest : [], observed)),
      ...ofConnections(text, observed),
    ];
  },
}));

/** The log cause that corresponds to each TLS connection failure that a capture shows. */
const causesOfFailures: Partial<Record<ContactFailure, LoggedCause>> = {
  ...{ silent: 'timeout', unanswered: 'timeout', late: 'timeout', refused: 'refused' },
  ...{ unreachable: 'unreachable', reset: 'closed', alert: 'handshake', handshake: 'handshake' },
};

/** Findings about upstreams that are queried over TLS. */
function ofConnections(text: CauseText, observed: Observations): readonly FoundCause[] {
  const failing = failedContacts(observed, ({ port }) => port === DNS_OVER_TLS);
  return failing.flatMap((each): FoundCause[] => {
    const { contact, failed, how, text: seen } = each;
    const { server, port, opened, clients } = contact;
    const cause = causesOfFailures[how];
    if (cause === undefined || !text.causes.includes(cause)) return [];
    const upstream = printHostPort(server, port);
    const certificate = certificateText(each);
    const untimely = certificate === null ? null : ofCertificate(certificate.isExpired, server);
    return [
      {
        title: `${untimely?.title ?? text.title}: ${upstream}`,
        subject: upstream,
        severity: failed >= LOST_CONNECTIONS * opened ? 'critical' : 'warning',
        confidence: 0.93,
        seen: [certificate?.text, `A DNS over TLS connection failed: ${seen}`],
        why:
          untimely?.why ??
          (how === 'unanswered'
            ? `The TCP connection opens, but the first TLS message (ClientHello) gets no answer. The server hangs, or something in between drops TLS. ${text.why}`
            : text.why),
        fix: untimely?.fix ?? text.fix,
        prove: text.prove(upstream),
        disproved: text.disproved,
        // The resulting failures.
        exchanges: observed.affectedExchanges(
          ({ name, rcode }) => rcode === RCODE.SERVFAIL && !observed.domains.isOfCluster(name),
        ),
        affected: [...clients.keys()],
      },
    ];
  });
}

/** Texts for an upstream whose certificate is out of date. */
function ofCertificate(
  isExpired: boolean,
  server: string,
): Pick<CauseText, 'title' | 'why' | 'fix'> {
  return {
    title: `The TLS certificate of an upstream ${isExpired ? 'has expired' : 'is not yet valid'}`,
    why: `Clients check the dates of a certificate, so each TLS handshake with ${server} fails, and the names that are forwarded to it get SERVFAIL. ${isExpired ? 'The certificate was not renewed, or the server still uses the old file.' : 'The certificate is new, and the clock of the machine that made it was ahead.'}`,
    fix: [
      isExpired
        ? `Renew the certificate on ${server}, and restart or reload the server, so that it uses the new file.`
        : `Correct the clock of the machine that makes certificates for ${server}, or wait.`,
      'Until then, forward to another upstream.',
      'If openssl shows valid dates, the clocks of the DNS pods’ nodes and of this capture are wrong.',
    ],
  };
}

function findingOf(
  text: CauseText,
  trouble: LoggedTrouble,
  rest: readonly LoggedTrouble[],
  observed: Observations,
): FoundCause {
  const { upstream, count, names, pods } = trouble;
  const others = rest.map((each) => each.upstream);
  const lines = `${count} ${count === 1 ? 'line' : 'lines'} in the log`;
  const ofNames =
    names.size === 0
      ? ''
      : ` about ${names.size === 1 ? 'one name' : `${names.size >= 1000 ? 'more than ' : ''}${names.size} names`} (${listed([...names], 5)})`;
  return {
    title: upstream === '' ? undefined : `${text.title}: ${upstream}`,
    subject: upstream,
    severity: severityOf(text, trouble, observed),
    confidence: count >= MANY_LINES ? 0.95 : count >= MIN_CASES ? 0.85 : 0.7,
    seen: [
      `${lines}${ofNames}${span(trouble)}${pods.size === 0 ? '' : `, from ${listed([...pods], 5)}`}`,
      `For example: ${trouble.text}`,
      rest.length > 0 &&
        `${rest.reduce((sum, each) => sum + each.count, 0)} more lines report the same for ${rest.length} other upstreams: ${listed(others, 10)}.`,
    ],
    why: text.why,
    fix: text.fix,
    prove: text.prove(upstream, names.values().next().value),
    disproved: text.disproved,
    affected: [...pods].slice(0, 20),
  };
}

/** A few failures in hours are a warning. Many, or a server that does not serve, are critical. */
function severityOf(
  { code, severity = 'critical' }: CauseText,
  { count, firstMs, lastMs }: LoggedTrouble,
  { total }: Observations,
): Severity {
  if (severity !== 'critical' || !OF_QUERIES.test(code)) return severity;
  if (total.asked > 0)
    return count >= Math.max(MIN_CASES, RARE_SHARE * total.asked) ? 'critical' : 'warning';
  const minutes = (lastMs - firstMs) / 60_000;
  if (Number.isFinite(minutes))
    return count >= Math.max(MIN_CASES, MANY_LINES_A_MINUTE * minutes) ? 'critical' : 'warning';
  return count >= MANY_LINES ? 'critical' : 'warning';
}

/** `, from 2026-11-22 03:07:20 to 03:09:11 UTC`. */
function span({ firstMs, lastMs }: LoggedTrouble): string {
  if (!Number.isFinite(firstMs))
    return ' (the log has no timestamps; add them with kubectl logs --timestamps)';
  const [from, to] = [firstMs, lastMs].map((ms) =>
    new Date(ms).toISOString().slice(0, 19).replace('T', ' '),
  );
  if (from === to) return `, at ${from} UTC`;
  return `, from ${from} to ${to!.slice(0, 10) === from!.slice(0, 10) ? to!.slice(11) : to} UTC`;
}

function hostOf(upstream: string): string {
  return upstream.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
}
