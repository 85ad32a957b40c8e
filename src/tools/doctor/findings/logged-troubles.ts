/** Failures in the log of a server: one finding for each cause and each upstream. */
import { printHostPort } from '../../../server/base/ip.ts';
import { RCODE } from '../../../server/wire/iana.ts';
import type { ContactFailure } from '../observe/contacts.ts';
import { DNS_OVER_TLS, failedContacts } from '../observe/failed-contacts.ts';
import type { LoggedCause, LoggedTrouble } from '../observe/logged-causes.ts';
import type { Observations } from '../observe/observations.ts';
import { type Finding, type FindingKind } from './finding.ts';
import type { Severity } from '../severity.ts';
import { listed, sentence } from '../texts.ts';
import { MAX_LOGGED_UPSTREAMS } from '../thresholds/errors.ts';
import { MIN_CASES, RARE_SHARE } from '../thresholds/evidence.ts';
import { MANY_LINES, MANY_LINES_A_MINUTE } from '../thresholds/lateness.ts';
import { LOST_CONNECTIONS } from '../thresholds/transport.ts';

/** The meaning of a cause, and its fix. */
interface CauseText {
  readonly causes: readonly LoggedCause[];
  readonly code: string;
  readonly title: string;
  readonly name: string;
  /** The worst that it can be; queries that failed are weighed by their number. */
  readonly severity: Severity;
  readonly why: string;
  readonly fix: readonly string[];
  /** @param upstream as ndots query takes it @param name one that failed */
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
    severity: 'critical',
    why: 'The server forwards queries, and no reply comes back in time: the upstream is down or overloaded, or something between drops the packets (a firewall, a security group, a limit on packets). Clients wait for seconds and then get SERVFAIL.',
    fix: [
      'Ask the upstream from the node and from a DNS pod: if only the pod gets no reply, look at NetworkPolicies and at source NAT of the pod network.',
      'If UDP fails and TCP works, look for a limit on packets or a firewall; if large answers alone fail, for the path MTU (plugin bufsize 1232).',
      'Name more than one upstream in forward, so that health checks can skip the silent one.',
    ],
    prove: (upstream, name) =>
      `${asked(upstream, name)}; the same with +tcp (in a DNS pod, and on the node)`,
    disproved: 'the upstream answers every query that is sent from the DNS pod',
  },
  {
    causes: ['refused'],
    code: 'ND4011',
    title: 'Nothing listens at the address of an upstream',
    name: 'upstreams that refuse connections',
    severity: 'critical',
    why: 'The host answers that no program has the port open: the upstream has stopped or moved, listens only at another address or protocol (TCP, TLS), or a proxy in front of a service without endpoints rejects the packets.',
    fix: [
      'See whether the upstream runs, and at which address and port it listens (ss -lntu on its host).',
      'If the address is one of a Service, see whether it has ready endpoints.',
      'Correct the address in forward, or in the resolv.conf that forward names.',
    ],
    prove: asked,
    disproved: 'the upstream answers at that address and port',
  },
  {
    causes: ['unreachable'],
    code: 'ND4012',
    title: 'There is no route to an upstream',
    name: 'upstreams without a route',
    severity: 'critical',
    why: 'The kernel of the node, or a router, has no way to the address: a missing route or default gateway, an IPv6 address on a node without IPv6, or a host that is down on the same network.',
    fix: [
      'ip route get ADDRESS on the node: no answer means that the route is missing.',
      'On nodes without IPv6 take IPv6 addresses out of forward, and out of the resolv.conf that it names.',
      'After a change of the CNI or of the nodes, see whether pods reach anything outside the cluster.',
    ],
    prove: (upstream, name) =>
      `ip route get ${upstream === '' ? 'ADDRESS' : hostOf(upstream)}; ${asked(upstream, name)}`,
    disproved: 'ip route get shows a route, and the address answers a ping or a query',
  },
  {
    causes: ['forbidden-to-send'],
    code: 'ND4013',
    title: 'The node does not let queries to an upstream out (operation not permitted)',
    name: 'packets that the own kernel refuses',
    severity: 'critical',
    why: 'The kernel refuses to send: a rule of iptables or nftables on the node drops the packet in OUTPUT, a BPF program of the CNI does, or connection tracking has no room for a new entry (nf_conntrack: table full).',
    fix: [
      'dmesg | grep nf_conntrack on the node: if the table is full, raise net.netfilter.nf_conntrack_max.',
      'iptables-save | grep -w DROP and nft list ruleset: look for rules in OUTPUT, and for NetworkPolicies that select the DNS pods (egress to port 53, UDP and TCP).',
      'conntrack -S: insert_failed and drop that rise show a full or contended table.',
    ],
    prove: (upstream, name) =>
      `conntrack -S; iptables -L OUTPUT -v -n; ${asked(upstream, name)} on the node`,
    disproved:
      'counters of DROP rules and of connection tracking stay the same while the errors go on',
  },
  {
    causes: ['unparsable'],
    code: 'ND4014',
    title: 'Replies of an upstream cannot be read',
    name: 'upstreams with replies that are cut or malformed',
    severity: 'critical',
    why: 'A reply came that is not a complete DNS message: cut without the TC flag, longer than the buffer that was announced (overflowing header size), or damaged by something between that rewrites DNS. The server drops it and answers SERVFAIL.',
    fix: [
      'bufsize 1232 in the Corefile: upstreams then send no UDP reply that is larger, and use TCP instead.',
      'forward with prefer_udp removed or force_tcp added: if the errors end, something between alters UDP replies.',
      'Ask the upstream directly for the names that fail, and report its replies to its operator.',
    ],
    prove: (upstream, name) =>
      `${asked(upstream, name)} +bufsize=1232; the same with +bufsize=4096`,
    disproved: 'the replies to the names that fail can be read when the upstream is asked directly',
  },
  {
    causes: ['crowded'],
    code: 'ND4015',
    title: 'The limit on concurrent queries of forward is reached (max_concurrent)',
    name: 'a limit on concurrent queries that is reached',
    severity: 'critical',
    why: 'As many queries wait for upstreams as max_concurrent allows, so further ones are refused at once. Either upstreams answer slowly or not at all, or a forwarding loop or a flood sends far more queries than usual.',
    fix: [
      'Look for slow or silent upstreams first: the limit only shows that replies do not come. Raising it takes about 2 KB of memory for each query that waits.',
      'If upstreams are fast, set max_concurrent to queries per second times the seconds of the slowest answers.',
      'See which clients ask most: ndots capture -o clients.',
    ],
    prove: () =>
      'curl -s DNS-POD:9153/metrics | grep -E "max_concurrent_rejects|forward_request_duration_seconds_sum"',
    disproved: 'coredns_forward_max_concurrent_rejects_total does not rise',
  },
  {
    causes: ['certificate', 'handshake'],
    code: 'ND4016',
    title: 'No TLS connection to an upstream: its certificate or its protocol is not accepted',
    name: 'upstreams without a valid certificate',
    severity: 'critical',
    why: 'The TLS handshake with the upstream fails: its certificate has expired, is signed by an authority that is not trusted, or is for another name than tls_servername; or the port does not speak TLS.',
    fix: [
      'Expired or not yet valid: renew the certificate of the upstream, and check the clock of the node.',
      'Unknown authority: name the CA in forward (tls CERT KEY CA, or tls CA), or use the upstream’s public name.',
      'Valid for another name: set tls_servername to a name that the certificate has.',
      'Not a TLS handshake: the port is not that of DNS over TLS (853), or a proxy answers instead.',
    ],
    prove: (upstream) =>
      `openssl s_client -connect ${upstream === '' ? 'UPSTREAM:853' : upstream} -servername NAME </dev/null | openssl x509 -noout -dates -subject -ext subjectAltName`,
    disproved: 'openssl verifies the certificate with the CA and the name that forward uses',
  },
  {
    causes: ['unhealthy'],
    code: 'ND4017',
    title: 'All upstreams of a forward count as down (no healthy proxies)',
    name: 'a forward without a healthy upstream',
    severity: 'critical',
    why: 'Health checks of all upstreams failed, so queries are not forwarded, or only at random. The cause is with the upstreams or on the way to them; other errors in the log often name it.',
    fix: [
      'Ask each upstream of the forward from a DNS pod.',
      'Upstreams that answer, but not the health check (a query for the NS records of the root): health_check 5s domain NAME with a name that they serve.',
    ],
    prove: () => 'curl -s DNS-POD:9153/metrics | grep -E "healthcheck_(failures|broken)_total"',
    disproved: 'coredns_forward_healthcheck_broken_total does not rise',
  },
  {
    causes: ['closed'],
    code: 'ND4018',
    title: 'An upstream closes connections before it has answered',
    name: 'upstreams that close connections',
    severity: 'critical',
    why: 'The upstream, or a load balancer or firewall in front of it, ends TCP or TLS connections with queries open: it restarts, limits connections or queries of each, or closes idle connections sooner than the server expects (expire).',
    fix: [
      'forward with expire below the idle time-out of the upstream or of the load balancer in front of it (default 10s).',
      'See whether the upstream accepts TCP at all, and how many connections of one client it allows.',
      'If force_tcp is set without need, remove it: UDP has no connections to lose.',
    ],
    prove: (upstream, name) => `${asked(upstream, name)} +tcp`,
    disproved:
      'queries over TCP from the DNS pod are answered, also some seconds after the connection was opened',
  },
  {
    causes: ['descriptors'],
    code: 'ND7005',
    title: 'The DNS server has no descriptors or ports left',
    name: 'a server without descriptors or ports',
    severity: 'critical',
    why: 'Each query that waits for an upstream takes a socket, and each socket a descriptor and a source port. The limit is reached: too low a limit of the process, or far more queries wait than usual because upstreams do not answer.',
    fix: [
      'Look for slow or silent upstreams first: queries that are answered release their sockets.',
      'Raise the limit of the process (ulimit -n, LimitNOFILE of the container runtime), and net.ipv4.ip_local_port_range.',
      'max_concurrent in forward limits the waiting queries.',
    ],
    prove: () =>
      'ls /proc/PID/fd | wc -l; grep "open files" /proc/PID/limits; ss -s (on the node of the DNS pod)',
    disproved: 'the process has far fewer descriptors open than its limit while the errors go on',
  },
  {
    causes: ['other'],
    code: 'ND4019',
    title: 'Queries fail for a reason that the log names',
    name: 'other errors in logs',
    severity: 'warning',
    why: 'The server logged why it could not answer. Doctor does not know this text; the server, or the plugin that it names, does.',
    fix: [
      'Read the text: it names the operation that failed. Ask the upstream for one of the names directly.',
    ],
    prove: asked,
    disproved: 'the names are answered',
  },
  {
    causes: ['api-rights'],
    code: 'ND5007',
    title: 'The DNS server has no right to read its objects: the API server refuses it',
    name: 'missing rights of the DNS server',
    severity: 'critical',
    why: 'The API server knows the server and refuses its lists and watches (RBAC), or rejects its token. Cluster names are then missing or outdated. A DNS pod that starts now does not become ready.',
    fix: [
      'Restore ClusterRole and ClusterRoleBinding system:coredns: services, endpoints, namespaces, pods (list, watch), and endpointslices of discovery.k8s.io.',
      'Unauthorized: see whether the pod has its service account and a token (automountServiceAccountToken), and whether the API server’s signing key changed; restart the pod.',
    ],
    prove: () =>
      'kubectl auth can-i list endpointslices.discovery.k8s.io --as=system:serviceaccount:kube-system:coredns',
    disproved: 'kubectl auth can-i says yes for list and watch of all of these',
  },
  {
    causes: ['api-away', 'unsynced'],
    code: 'ND5001',
    title: 'Cluster names fail, external names do not: the DNS pods do not reach the API server',
    name: 'DNS pods without a connection to the API server',
    severity: 'critical',
    why: 'Lists and watches of Services and EndpointSlices fail: the API server is down or overloaded, its address (the kubernetes Service) does not lead to it from this node, or a NetworkPolicy or certificate prevents it. Known names stay unchanged; changes are missed, and a new DNS pod does not become ready.',
    fix: [
      'See whether the API server answers: kubectl get --raw /readyz.',
      'From the node of the DNS pod: curl -k https://KUBERNETES-SERVICE-IP:443/healthz. If that fails, look at kube-proxy on this node and at the CNI.',
      'x509: the CA in the service account does not match the API server’s certificate: restart the pod after the CA was rotated.',
    ],
    prove: () =>
      'kubectl -n kube-system logs DNS-POD --timestamps | grep -iE "failed to (list|watch)|API server"',
    disproved: 'no such line is written any more, and new Services are found',
  },
  {
    causes: ['bind'],
    code: 'ND5008',
    title: 'The DNS server cannot open its port',
    name: 'a port that is taken or forbidden',
    severity: 'critical',
    why: 'Another program has the port (systemd-resolved, dnsmasq or another DNS server on the node, with hostNetwork; a second server block that binds the same), or the container may not bind ports below 1024. The server ends, and is restarted again and again.',
    fix: [
      'address already in use: ss -lnup "sport = :53" on the node shows the program. Bind to other addresses (bind), or stop it.',
      'permission denied: add the capability NET_BIND_SERVICE to the container, or listen at a port above 1023.',
    ],
    prove: () =>
      'ss -lntup "sport = :53" (in the network namespace of the pod, or on the node with hostNetwork)',
    disproved: 'nothing else has the port, and the server starts',
  },
  {
    causes: ['panic'],
    code: 'ND5004',
    title: 'A DNS server runs into errors of its own (panics)',
    name: 'errors of the server itself',
    severity: 'critical',
    why: 'The server met a bug: the query at hand is lost, or the process ends and is restarted.',
    fix: [
      'Keep the log with the stack (errors { stacktrace } in the Corefile), and search the issues of the server for its first lines.',
      'Update the server. If a query triggers it, block its name or type until then (plugins acl, template).',
    ],
    prove: () => 'curl -s DNS-POD:9153/metrics | grep coredns_panics_total',
    disproved: 'coredns_panics_total stays 0',
  },
  {
    causes: ['configuration'],
    code: 'ND1001',
    title: 'The configuration has errors, by the rules of the linter',
    name: 'errors of the configuration',
    severity: 'critical',
    why: 'The server could not read its Corefile and did not start.',
    fix: [
      'Correct the line that the text names; ndots lint Corefile shows all errors at once, with fixes.',
    ],
    prove: () => 'ndots lint Corefile',
    disproved: 'the server starts with this Corefile',
  },
  {
    causes: ['reload'],
    code: 'ND1002',
    title: 'DNS pods do not all run the configuration that is written',
    name: 'configurations that were not taken',
    severity: 'warning',
    why: 'A changed Corefile could not be loaded: the server still uses the one before, and will not start with the new one after a restart.',
    fix: ['ndots lint on the Corefile reports the fault. Correct it before a DNS pod restarts.'],
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
    why: 'A plugin has not finished its start, so the pod gets no queries through the service. For kubernetes this means that the first lists from the API server have not come.',
    fix: [
      'If it lasts for more than a minute: look for errors of plugin/kubernetes before it (rights, API server), and at kubectl -n kube-system describe pod.',
    ],
    prove: () => 'curl -s DNS-POD:8181/ready',
    disproved: '/ready answers 200',
  },
  {
    causes: ['stalled'],
    code: 'ND7006',
    title: 'A DNS server is too busy to answer itself',
    name: 'a server that has no time for itself',
    severity: 'warning',
    why: 'The server’s own health request took longer than a second, or a worker did not turn for seconds: it gets too little CPU (throttled by its limit, or a busy node), or has too much to do. Queries are late then, too.',
    fix: [
      'Raise or remove the CPU limit of the DNS pods: throttling stops them for up to 100 ms at a time.',
      'Add replicas, or a cache on each node (NodeLocal DNSCache, ndots node-cache).',
    ],
    prove: () =>
      'curl -s DNS-POD:9153/metrics | grep coredns_health_request; cat /sys/fs/cgroup/cpu.stat in the pod (nr_throttled)',
    disproved: 'nr_throttled does not rise, and no such line is written under load',
  },
  {
    causes: ['node-rules'],
    code: 'ND5009',
    title: 'The node cache cannot set up its interface or rules',
    name: 'rules of the node cache that fail',
    severity: 'warning',
    why: 'NodeLocal DNSCache could not add or check the rules that keep its queries out of connection tracking, or its interface: another program holds the lock or rewrites the tables, or the container lacks NET_ADMIN.',
    fix: [
      'A lock now and then does no harm: the rules are checked again a minute later.',
      'If it lasts: see that the container has NET_ADMIN and the xtables lock mounted (/run/xtables.lock), and that its iptables mode (legacy, nft) is the one of the node.',
    ],
    prove: () => 'iptables-save -t raw | grep NOTRACK on the node; ip addr show nodelocaldns',
    disproved: 'the rules and the interface are there',
  },
  {
    causes: ['stopped'],
    code: 'ND5010',
    title: 'A DNS server was stopped',
    name: 'stops of the server',
    severity: 'info',
    why: 'The process received a signal to end, as in a rollout, an eviction, or after a failed liveness probe.',
    fix: [
      'If nothing was changed: kubectl -n kube-system describe pod shows whether kubelet ended it (liveness probe, memory), and kubectl get events why.',
    ],
    prove: () => getLog,
    disproved: 'a rollout of that time explains it',
  },
];

/** These are about queries that failed; the others about the server. */
const OF_QUERIES = /^ND(?:4\d{3}|7005)$/;

/** A rule for each cause. */
export const loggedTroubles: readonly FindingKind[] = texts.map((text) => ({
  code: text.code,
  title: text.title,
  name: text.name,
  inCapture: (observed) => {
    const { list } = observed.logged;
    // A server without rights starts unsynced, too.
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

/** Failures of TLS connections to an upstream that a capture shows, by their cause in a log. */
const causesOfFailures: Partial<Record<ContactFailure, LoggedCause>> = {
  ...{ silent: 'timeout', unanswered: 'timeout', late: 'timeout', refused: 'refused' },
  ...{ unreachable: 'unreachable', reset: 'closed', alert: 'handshake', handshake: 'handshake' },
};

/** Findings about upstreams that are queried over TLS. */
function ofConnections(text: CauseText, observed: Observations): readonly Finding[] {
  const failing = failedContacts(observed, ({ port }) => port === DNS_OVER_TLS);
  return failing.flatMap(({ contact, failed, how, text: seen }): Finding[] => {
    const { server, port, opened, clients } = contact;
    const cause = causesOfFailures[how];
    if (cause === undefined || !text.causes.includes(cause)) return [];
    const upstream = printHostPort(server, port);
    return [
      {
        code: text.code,
        title: `${text.title}: ${upstream}`,
        subject: upstream,
        severity: failed >= LOST_CONNECTIONS * opened ? 'critical' : 'warning',
        confidence: 0.93,
        seen: [sentence(`DNS over TLS: ${seen}`)],
        why:
          how === 'unanswered'
            ? `The TCP connection opens, and the TLS handshake does not go on: the first message (ClientHello) gets no answer. The server hangs, or something between drops TLS. ${text.why}`
            : text.why,
        fix: text.fix,
        prove: text.prove(upstream),
        disproved: text.disproved,
        // The resulting failures.
        exchanges: observed.affected.flatMap(({ exchanges }) =>
          exchanges.filter(
            ({ name, rcode }) => rcode === RCODE.SERVFAIL && !observed.domains.isOfCluster(name),
          ),
        ),
        affected: [...clients.keys()],
      },
    ];
  });
}

function findingOf(
  text: CauseText,
  trouble: LoggedTrouble,
  rest: readonly LoggedTrouble[],
  observed: Observations,
): Finding {
  const { upstream, count, names, pods } = trouble;
  const lines = `${count} ${count === 1 ? 'line' : 'lines'} of the log`;
  const ofNames =
    names.size === 0
      ? ''
      : ` about ${names.size === 1 ? 'one name' : `${names.size >= 1000 ? 'more than ' : ''}${names.size} names`} (${listed([...names], 5)})`;
  return {
    code: text.code,
    title: upstream === '' ? text.title : `${text.title}: ${upstream}`,
    subject: upstream,
    severity: severityOf(text, trouble, observed),
    confidence: count >= MANY_LINES ? 0.95 : count >= MIN_CASES ? 0.85 : 0.7,
    seen: [
      sentence(
        `${lines}${ofNames}${span(trouble)}${pods.size === 0 ? '' : `, of ${listed([...pods], 5)}`}`,
      ),
      sentence(`For example: ${trouble.text}`),
      ...(rest.length === 0
        ? []
        : [
            `The same of ${rest.length} more upstreams, ${rest.reduce((sum, each) => sum + each.count, 0)} lines: ${listed(
              rest.map((each) => each.upstream),
              10,
            )}.`,
          ]),
    ],
    why: text.why,
    fix: text.fix,
    prove: text.prove(upstream, names.values().next().value),
    disproved: text.disproved,
    exchanges: [],
    affected: [...pods].slice(0, 20),
  };
}

/** A few failures in hours are a warning; many, or a server that does not serve, are critical. */
function severityOf(
  { code, severity }: CauseText,
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
  if (!Number.isFinite(firstMs)) return ' (the log has no times: kubectl logs --timestamps)';
  const [from, to] = [firstMs, lastMs].map((ms) =>
    new Date(ms).toISOString().slice(0, 19).replace('T', ' '),
  );
  if (from === to) return `, at ${from} UTC`;
  return `, from ${from} to ${to!.slice(0, 10) === from!.slice(0, 10) ? to!.slice(11) : to} UTC`;
}

function hostOf(upstream: string): string {
  return upstream.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
}
