/**
 * The answers of a cluster's DNS: names × types × object shapes, for several configurations. The objects are in
 * objects.ts. Each line is a row:
 *
 *   NAME TYPE RESULT [RECORD | RECORD …]
 *
 * - `~` means `.svc.cluster.local.`, `@` the queried name; other names are absolute
 * - RESULT: NOERROR, NODATA (NOERROR, no answer, SOA), NXDOMAIN (with SOA), SERVFAIL, REFUSED
 * - RECORD: `OWNER [TTL] TYPE DATA`; a leading `+` puts it into the additional section; the default TTL is 5. Records
 *   in a section may be in any order.
 */
export interface Configuration {
  readonly title: string;
  /** The arguments of `kubernetes`. */
  readonly zones: string;
  readonly properties: readonly string[];
  readonly rows: string;
}

const kubeadm = 'cluster.local in-addr.arpa ip6.arpa';

export const configurations: readonly Configuration[] = [
  {
    title: 'services, by default',
    zones: kubeadm,
    properties: [],
    rows: `
      svc1.testns~ A NOERROR @ A 10.0.0.1
      svc1.testns~ AAAA NODATA
      svc1.testns~ SRV NOERROR @ SRV 0 100 80 svc1.testns~ | + svc1.testns~ A 10.0.0.1
      svc1.testns~ TXT NODATA
      svc1.testns~ MX NODATA
      svc1.testns~ CNAME NODATA
      svc1.testns~ NS NODATA
      svc1.testns~ SOA NODATA
      svc1.testns~ PTR NODATA
      svc1.testns~ HTTPS NODATA
      svc1.testns~ ANY NODATA
      svc1.testns~ AXFR REFUSED
      svc1.testns~ IXFR REFUSED
      _http._tcp.svc1.testns~ SRV NOERROR @ SRV 0 100 80 svc1.testns~ | + svc1.testns~ A 10.0.0.1
      http.tcp.svc1.testns~ SRV NOERROR @ SRV 0 100 80 svc1.testns~ | + svc1.testns~ A 10.0.0.1
      _._.svc1.testns~ SRV NOERROR @ SRV 0 100 80 svc1.testns~ | + svc1.testns~ A 10.0.0.1
      _http._tcp.svc1.testns~ A NOERROR @ A 10.0.0.1
      _http._tcp.svc1.testns~ AAAA NODATA
      _http._udp.svc1.testns~ SRV NXDOMAIN
      _http._udp.svc1.testns~ A NXDOMAIN
      _https._tcp.svc1.testns~ SRV NXDOMAIN
      _tcp.svc1.testns~ SRV NXDOMAIN
      svcdual.testns~ A NOERROR @ A 10.0.0.3
      svcdual.testns~ AAAA NOERROR @ AAAA fd00:10::3
      svcdual.testns~ SRV NOERROR @ SRV 0 50 80 svcdual.testns~ | + svcdual.testns~ A 10.0.0.3 | + svcdual.testns~ AAAA fd00:10::3
      svc6.testns~ A NODATA
      svc6.testns~ AAAA NOERROR @ AAAA fd00:10::6
      twoports.testns~ SRV NOERROR @ SRV 0 50 53 twoports.testns~ | + twoports.testns~ A 10.0.0.5
      _dns._udp.twoports.testns~ SRV NOERROR @ SRV 0 100 53 twoports.testns~ | + twoports.testns~ A 10.0.0.5
      _dns._tcp.twoports.testns~ SRV NXDOMAIN
      unnamed.testns~ SRV NOERROR @ SRV 0 100 8080 unnamed.testns~ | + unnamed.testns~ A 10.0.0.7
      _http._tcp.unnamed.testns~ SRV NXDOMAIN
      portless.testns~ A NOERROR @ A 10.0.0.8
      portless.testns~ SRV NODATA
      unbacked.testns~ A NOERROR @ A 10.0.0.9
      unready.testns~ A NOERROR @ A 10.0.0.10
      node.testns~ A NOERROR @ A 10.0.0.11
      lb.testns~ A NOERROR @ A 10.0.0.12
      svc1.other~ A NOERROR @ A 10.0.1.1
      missing.testns~ A NXDOMAIN
      missing.testns~ AAAA NXDOMAIN
      missing.testns~ SRV NXDOMAIN
      missing.testns~ TXT NXDOMAIN
      missing.testns~ SOA NXDOMAIN
      missing.testns~ NS NXDOMAIN
      missing.testns~ HTTPS NXDOMAIN
      svc1.missing~ A NXDOMAIN
      *.testns~ A NXDOMAIN
      any.testns~ A NXDOMAIN
      svc1.*~ A NXDOMAIN
      a.b.c.svc1.testns~ A NXDOMAIN
      zone-a.pin._zone.zoned.testns~ A NXDOMAIN
    `,
  },
  {
    title: 'endpoints of services with a cluster address',
    zones: kubeadm,
    properties: [],
    rows: `
      172-16-0-1.svc1.testns~ A NOERROR @ A 172.16.0.1
      172-16-0-1.svc1.testns~ AAAA NODATA
      172-16-0-1.svc1.testns~ SRV NOERROR @ SRV 0 100 80 @ | + @ A 172.16.0.1
      named.svc1.testns~ A NOERROR @ A 172.16.0.2
      172-16-0-2.svc1.testns~ A NXDOMAIN
      172-16-0-3.svcdual.testns~ A NOERROR @ A 172.16.0.3
      fd00-16--3.svcdual.testns~ AAAA NOERROR @ AAAA fd00:16::3
      172-16-0-10.unready.testns~ A NXDOMAIN
      172-16-0-1.svcdual.testns~ A NXDOMAIN
      172.svc1.testns~ A NXDOMAIN
    `,
  },
  {
    title: 'headless services',
    zones: kubeadm,
    properties: [],
    rows: `
      hdls.testns~ A NOERROR @ A 172.20.0.1 | @ A 172.20.0.2 | @ A 172.20.0.4
      hdls.testns~ AAAA NODATA
      hdls.testns~ TXT NODATA
      hdls.testns~ SRV NOERROR @ SRV 0 25 80 dup-name.hdls.testns~ | @ SRV 0 25 80 172-20-0-2.hdls.testns~ | @ SRV 0 25 9000 172-20-0-2.hdls.testns~ | + dup-name.hdls.testns~ A 172.20.0.1 | + 172-20-0-2.hdls.testns~ A 172.20.0.2 | + dup-name.hdls.testns~ A 172.20.0.4
      _http._tcp.hdls.testns~ SRV NOERROR @ SRV 0 33 80 dup-name.hdls.testns~ | @ SRV 0 33 80 172-20-0-2.hdls.testns~ | + dup-name.hdls.testns~ A 172.20.0.1 | + 172-20-0-2.hdls.testns~ A 172.20.0.2 | + dup-name.hdls.testns~ A 172.20.0.4
      _admin._tcp.hdls.testns~ SRV NOERROR @ SRV 0 100 9000 172-20-0-2.hdls.testns~ | + 172-20-0-2.hdls.testns~ A 172.20.0.2
      _admin._tcp.hdls.testns~ A NOERROR @ A 172.20.0.2
      _http._udp.hdls.testns~ SRV NXDOMAIN
      dup-name.hdls.testns~ A NOERROR @ A 172.20.0.1 | @ A 172.20.0.4
      172-20-0-2.hdls.testns~ A NOERROR @ A 172.20.0.2
      172-20-0-3.hdls.testns~ A NXDOMAIN
      hdls-pod-2.hdls.testns~ A NXDOMAIN
      hdls6.testns~ A NODATA
      hdls6.testns~ AAAA NOERROR @ AAAA fd00:20::1 | @ AAAA fd00:20::
      fd00-20--1.hdls6.testns~ AAAA NOERROR @ AAAA fd00:20::1
      fd00-20--0.hdls6.testns~ AAAA NOERROR @ AAAA fd00:20::
      fd00-20--.hdls6.testns~ AAAA NXDOMAIN
      hdlsdual.testns~ A NOERROR @ A 172.20.1.1
      hdlsdual.testns~ AAAA NOERROR @ AAAA fd00:20:1::1
      hdlsdual.testns~ SRV NOERROR @ SRV 0 50 80 a.hdlsdual.testns~ | + a.hdlsdual.testns~ A 172.20.1.1 | + a.hdlsdual.testns~ AAAA fd00:20:1::1
      a.hdlsdual.testns~ A NOERROR @ A 172.20.1.1
      a.hdlsdual.testns~ AAAA NOERROR @ AAAA fd00:20:1::1
      hdlsportless.testns~ A NOERROR @ A 172.20.2.1
      hdlsportless.testns~ SRV NODATA
      hdlsunready.testns~ A NXDOMAIN
      hdlsunready.testns~ SRV NXDOMAIN
      hdlsunready.testns~ TXT NXDOMAIN
      hdlsalone.testns~ A NXDOMAIN
      six.testns~ SRV NOERROR @ SRV 0 16 80 172-20-6-1.six.testns~ | @ SRV 0 16 80 172-20-6-2.six.testns~ | @ SRV 0 16 80 172-20-6-3.six.testns~ | @ SRV 0 16 80 172-20-6-4.six.testns~ | @ SRV 0 16 80 172-20-6-5.six.testns~ | @ SRV 0 16 80 172-20-6-6.six.testns~ | + 172-20-6-1.six.testns~ A 172.20.6.1 | + 172-20-6-2.six.testns~ A 172.20.6.2 | + 172-20-6-3.six.testns~ A 172.20.6.3 | + 172-20-6-4.six.testns~ A 172.20.6.4 | + 172-20-6-5.six.testns~ A 172.20.6.5 | + 172-20-6-6.six.testns~ A 172.20.6.6
    `,
  },
  {
    title: 'endpoints that are domain names',
    zones: kubeadm,
    properties: [],
    rows: `
      named.testns~ A NOERROR @ CNAME ext.example.org. | ext.example.org. 303 A 198.51.100.1
      named.testns~ AAAA NOERROR @ CNAME ext.example.org.
      named.testns~ CNAME NOERROR @ CNAME ext.example.org.
      named.testns~ SRV NOERROR @ SRV 0 100 80 ext.example.org.
      named.testns~ TXT NODATA
      _http._tcp.named.testns~ SRV NOERROR @ SRV 0 100 80 ext.example.org.
      _http._udp.named.testns~ SRV NXDOMAIN
      db.named.testns~ A NOERROR @ CNAME ext.example.org. | ext.example.org. 303 A 198.51.100.1
      ext-example-org.named.testns~ A NXDOMAIN
      namedin.testns~ A NOERROR @ CNAME svc1.testns~ | svc1.testns~ A 10.0.0.1
      namedin.testns~ AAAA NODATA
      namedin.testns~ CNAME NOERROR @ CNAME svc1.testns~
      svc1-testns-svc-cluster-local.namedin.testns~ A NOERROR @ CNAME svc1.testns~ | svc1.testns~ A 10.0.0.1
      namedtwice.testns~ A NOERROR @ CNAME ext.example.org. | ext.example.org. 303 A 198.51.100.1
      namedtwice.testns~ SRV NOERROR @ SRV 0 50 80 ext.example.org. | @ SRV 0 50 80 dead.example.org.
      dead-example-org.namedtwice.testns~ A NOERROR @ CNAME dead.example.org.
      namedmixed.testns~ A NOERROR @ A 172.20.7.1
      namedmixed.testns~ AAAA NODATA
      namedmixed.testns~ CNAME NODATA
      namedmixed.testns~ SRV NOERROR @ SRV 0 50 80 ext.example.org. | @ SRV 0 50 80 172-20-7-1.namedmixed.testns~ | + 172-20-7-1.namedmixed.testns~ A 172.20.7.1
      namedself.testns~ A NODATA
      namedself.testns~ CNAME NOERROR @ CNAME @
      namedunready.testns~ A NXDOMAIN
      extnamed.testns~ A NOERROR @ CNAME named.testns~ | named.testns~ CNAME ext.example.org. | ext.example.org. 303 A 198.51.100.1
    `,
  },
  {
    title: 'addresses in unusual spellings',
    zones: kubeadm,
    properties: ['pods verified'],
    rows: `
      zeros.testns~ A NOERROR @ A 10.0.8.1
      zeros.testns~ AAAA NODATA
      1.8.0.10.in-addr.arpa. PTR NOERROR @ PTR zeros.testns~
      hdlszeros.testns~ A NOERROR @ A 10.9.0.6
      10-9-0-6.hdlszeros.testns~ A NOERROR @ A 10.9.0.6
      6.0.9.10.in-addr.arpa. PTR NOERROR @ PTR 10-9-0-6.hdlszeros.testns~
      hdlsmapped.testns~ A NOERROR @ A 172.20.8.2
      hdlsmapped.testns~ AAAA NODATA
      172-20-8-2.hdlsmapped.testns~ A NOERROR @ A 172.20.8.2
      172-30-0-8.testns.pod.cluster.local. A NOERROR @ A 172.30.0.8
      172-030-000-008.testns.pod.cluster.local. A NXDOMAIN
    `,
  },
  {
    title: 'names that only have others below them',
    zones: kubeadm,
    properties: ['pods insecure'],
    rows: `
      cluster.local. A NODATA
      cluster.local. AAAA NODATA
      cluster.local. TXT NODATA
      cluster.local. MX NODATA
      cluster.local. SOA NOERROR @ SOA *
      svc.cluster.local. A NODATA
      svc.cluster.local. TXT NODATA
      svc.cluster.local. SOA NODATA
      pod.cluster.local. A NODATA
      testns~ A NODATA
      testns~ AAAA NODATA
      testns~ TXT NODATA
      testns~ SOA NODATA
      empty~ A NODATA
      missing~ A NXDOMAIN
      missing~ TXT NXDOMAIN
      testns.pod.cluster.local. A NODATA
      missing.pod.cluster.local. A NXDOMAIN
      other.cluster.local. A NXDOMAIN
      a.b.cluster.local. A NXDOMAIN
      dns-version.cluster.local. TXT NOERROR @ 28800 TXT "1.1.0"
      dns-version.cluster.local. A NODATA
      dns-version.cluster.local. SRV NODATA
      dns.cluster.local. A NODATA
      dns.cluster.local. TXT NODATA
      ns.dns.cluster.local. TXT NODATA
      ns.dns.cluster.local. SRV NODATA
      x.ns.dns.cluster.local. A NXDOMAIN
      cluster.local. AXFR REFUSED
    `,
  },
  {
    title: 'ExternalName services',
    zones: kubeadm,
    properties: [],
    rows: `
      ext.testns~ CNAME NOERROR @ CNAME ext.example.org.
      ext.testns~ A NOERROR @ CNAME ext.example.org. | ext.example.org. 303 A 198.51.100.1
      ext.testns~ AAAA NOERROR @ CNAME ext.example.org.
      ext.testns~ SRV NODATA
      ext.testns~ TXT NODATA
      ext.testns~ HTTPS NODATA
      _http._tcp.ext.testns~ SRV NXDOMAIN
      sub.ext.testns~ A NXDOMAIN
      extdot.testns~ A NOERROR @ CNAME dead.example.org.
      extfails.testns~ A NOERROR @ CNAME fails.example.org.
      extip.testns~ A NXDOMAIN
      extip.testns~ CNAME NXDOMAIN
      extin.testns~ A NOERROR @ CNAME svc1.testns~ | svc1.testns~ A 10.0.0.1
      extin.testns~ AAAA NODATA
      extin.testns~ CNAME NOERROR @ CNAME svc1.testns~
      extchain.testns~ A NOERROR @ CNAME extin.testns~ | extin.testns~ CNAME svc1.testns~ | svc1.testns~ A 10.0.0.1
      extself.testns~ A NODATA
      extself.testns~ CNAME NOERROR @ CNAME extself.testns~
      extloop1.testns~ A NODATA
      extmissing.testns~ A NODATA
      ext2out.testns~ A NOERROR @ CNAME ext.testns~ | ext.testns~ CNAME ext.example.org. | ext.example.org. 303 A 198.51.100.1
      chain1.testns~ A NOERROR @ CNAME chain0.testns~ | chain0.testns~ CNAME svc1.testns~ | svc1.testns~ A 10.0.0.1
      chain12.testns~ A NODATA
    `,
  },
  {
    title: 'reverse names',
    zones: kubeadm,
    properties: [],
    rows: `
      1.0.0.10.in-addr.arpa. PTR NOERROR @ PTR svc1.testns~
      1.0.0.10.in-addr.arpa. A NODATA
      1.0.0.10.in-addr.arpa. TXT NODATA
      1.0.16.172.in-addr.arpa. PTR NOERROR @ PTR 172-16-0-1.svc1.testns~
      2.0.16.172.in-addr.arpa. PTR NOERROR @ PTR named.svc1.testns~
      2.0.20.172.in-addr.arpa. PTR NOERROR @ PTR 172-20-0-2.hdls.testns~
      3.0.20.172.in-addr.arpa. PTR NXDOMAIN
      3.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.d.f.ip6.arpa. PTR NOERROR @ PTR svcdual.testns~
      1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.0.0.0.0.d.f.ip6.arpa. PTR NOERROR @ PTR fd00-20--1.hdls6.testns~
      9.9.9.9.in-addr.arpa. PTR NXDOMAIN
      9.9.9.9.in-addr.arpa. A NXDOMAIN
      0.10.in-addr.arpa. PTR NXDOMAIN
      01.0.0.10.in-addr.arpa. PTR NXDOMAIN
      in-addr.arpa. PTR NODATA
      in-addr.arpa. SOA NOERROR @ SOA *
    `,
  },
  {
    title: 'pods disabled',
    zones: 'cluster.local',
    properties: ['pods disabled'],
    rows: `
      172-30-0-1.testns.pod.cluster.local. A NXDOMAIN
      testns.pod.cluster.local. A NXDOMAIN
      pod.cluster.local. A NODATA
    `,
  },
  {
    title: 'pods insecure',
    zones: 'cluster.local',
    properties: ['pods insecure'],
    rows: `
      172-30-0-1.testns.pod.cluster.local. A NOERROR @ A 172.30.0.1
      172-30-0-1.testns.pod.cluster.local. AAAA NODATA
      172-30-0-1.testns.pod.cluster.local. TXT NODATA
      172-30-0-1.testns.pod.cluster.local. SRV NOERROR @ SRV 0 100 0 @ | + @ A 172.30.0.1
      1-2-3-4.testns.pod.cluster.local. A NOERROR @ A 1.2.3.4
      1-2-3-4.missing.pod.cluster.local. A NXDOMAIN
      1-2-3-400.testns.pod.cluster.local. A NXDOMAIN
      a-b-c-d.testns.pod.cluster.local. A NXDOMAIN
      fd00-30--1.testns.pod.cluster.local. AAAA NOERROR @ AAAA fd00:30::1
      fd00-30--1.testns.pod.cluster.local. A NODATA
      --1.testns.pod.cluster.local. AAAA NOERROR @ AAAA ::1
      www.1-2-3-4.testns.pod.cluster.local. A NOERROR @ A 1.2.3.4
      running.testns.pod.cluster.local. A NXDOMAIN
    `,
  },
  {
    title: 'pods verified',
    zones: 'cluster.local',
    properties: ['pods verified'],
    rows: `
      172-30-0-1.testns.pod.cluster.local. A NOERROR @ A 172.30.0.1
      172-30-0-1.testns.pod.cluster.local. AAAA NODATA
      172-30-0-1.other.pod.cluster.local. A NXDOMAIN
      172-30-0-1.other.pod.cluster.local. AAAA NXDOMAIN
      172-30-0-2.testns.pod.cluster.local. A NXDOMAIN
      172-30-0-3.testns.pod.cluster.local. A NXDOMAIN
      172-30-0-9.testns.pod.cluster.local. A NXDOMAIN
      fd00-30--6.testns.pod.cluster.local. AAAA NOERROR @ AAAA fd00:30::6
      fd00-30-0-0-0-0-0-6.testns.pod.cluster.local. AAAA NXDOMAIN
      fd00-30--1.testns.pod.cluster.local. AAAA NXDOMAIN
      172-30-0-7.testns.pod.cluster.local. A NOERROR @ A 172.30.0.7
      172-30-0-7.testns.pod.cluster.local. SRV NOERROR @ SRV 0 50 0 @ | + @ A 172.30.0.7
    `,
  },
  {
    title: 'endpoint_pod_names',
    zones: kubeadm,
    properties: ['endpoint_pod_names'],
    rows: `
      hdls-pod-2.hdls.testns~ A NOERROR @ A 172.20.0.2
      172-20-0-2.hdls.testns~ A NXDOMAIN
      dup-name.hdls.testns~ A NOERROR @ A 172.20.0.1 | @ A 172.20.0.4
      2.0.20.172.in-addr.arpa. PTR NOERROR @ PTR hdls-pod-2.hdls.testns~
      vm-1.targets.testns~ A NOERROR @ A 172.20.9.1
      1.9.20.172.in-addr.arpa. PTR NOERROR @ PTR vm-1.targets.testns~
      172-20-9-2.targets.testns~ A NOERROR @ A 172.20.9.2
      2.9.20.172.in-addr.arpa. PTR NOERROR @ PTR 172-20-9-2.targets.testns~
      same-a.targets.testns~ A NOERROR @ A 172.20.9.3
      targets.testns~ SRV NOERROR @ SRV 0 25 80 vm-1.targets.testns~ | @ SRV 0 25 80 172-20-9-2.targets.testns~ | @ SRV 0 25 80 same-a.targets.testns~ | @ SRV 0 25 80 same-b.targets.testns~ | + vm-1.targets.testns~ A 172.20.9.1 | + 172-20-9-2.targets.testns~ A 172.20.9.2 | + same-a.targets.testns~ A 172.20.9.3 | + same-b.targets.testns~ A 172.20.9.3
    `,
  },
  {
    title: 'noendpoints',
    zones: kubeadm,
    properties: ['noendpoints'],
    rows: `
      svc1.testns~ A NOERROR @ A 10.0.0.1
      172-16-0-1.svc1.testns~ A NXDOMAIN
      hdls.testns~ A NXDOMAIN
      hdls.testns~ SRV NXDOMAIN
      1.0.16.172.in-addr.arpa. PTR NXDOMAIN
      1.0.0.10.in-addr.arpa. PTR NOERROR @ PTR svc1.testns~
    `,
  },
  {
    title: 'ignore empty_service',
    zones: 'cluster.local',
    properties: ['ignore empty_service'],
    rows: `
      svc1.testns~ A NOERROR @ A 10.0.0.1
      unbacked.testns~ A NXDOMAIN
      unbacked.testns~ AAAA NXDOMAIN
      unready.testns~ A NXDOMAIN
      unready.testns~ SRV NXDOMAIN
      ext.testns~ CNAME NOERROR @ CNAME ext.example.org.
    `,
  },
  {
    title: 'namespaces',
    zones: kubeadm,
    properties: ['namespaces testns absent'],
    rows: `
      svc1.testns~ A NOERROR @ A 10.0.0.1
      svc1.other~ A NXDOMAIN
      other~ A NXDOMAIN
      empty~ A NXDOMAIN
      absent~ A NXDOMAIN
      1.1.0.10.in-addr.arpa. PTR NXDOMAIN
      1.1.16.172.in-addr.arpa. PTR NXDOMAIN
      1.0.0.10.in-addr.arpa. PTR NOERROR @ PTR svc1.testns~
    `,
  },
  {
    title: 'namespace_labels',
    zones: kubeadm,
    properties: ['namespace_labels exposed=yes'],
    rows: `
      svc1.testns~ A NOERROR @ A 10.0.0.1
      svc1.other~ A NXDOMAIN
      other~ A NXDOMAIN
      empty~ A NODATA
      1.1.0.10.in-addr.arpa. PTR NOERROR @ PTR svc1.other~
    `,
  },
  {
    title: 'labels',
    zones: 'cluster.local',
    properties: ['labels app in (web, api)'],
    rows: `
      svc1.testns~ A NOERROR @ A 10.0.0.1
      svcdual.testns~ A NXDOMAIN
      testns~ A NODATA
    `,
  },
  {
    title: 'zonal',
    zones: 'cluster.local',
    properties: ['zonal'],
    rows: `
      zone-a.pin._zone.zoned.testns~ A NOERROR @ A 172.20.5.1
      zone-a.pin._zone.zoned.testns~ SRV NOERROR @ SRV 0 100 80 172-20-5-1.zoned.testns~ | + 172-20-5-1.zoned.testns~ A 172.20.5.1
      zone-a.pin._zone.zoned.testns~ AAAA NODATA
      zone-b.pin._zone.zoned.testns~ A NOERROR @ A 172.20.5.2
      corp.example.com.pin._zone.zoned.testns~ A NOERROR @ A 172.20.5.3
      nowhere.pin._zone.zoned.testns~ A NODATA
      nowhere.pin._zone.zoned.testns~ TXT NODATA
      nowhere.pin._zone.zoned.testns~ SRV NODATA
      zone-a.prefer._zone.zoned.testns~ A NOERROR @ A 172.20.5.1
      nowhere.prefer._zone.zoned.testns~ A NOERROR @ A 172.20.5.1 | @ A 172.20.5.2 | @ A 172.20.5.3
      nowhere.prefer._zone.hdlsalone.testns~ A NODATA
      zone-a.avoid._zone.zoned.testns~ A NXDOMAIN
      zone-a.pin._zone.svc1.testns~ A NXDOMAIN
      zone-a.pin._zone.missing.testns~ A NXDOMAIN
      pin._zone.zoned.testns~ A NXDOMAIN
      zoned.testns~ A NOERROR @ A 172.20.5.1 | @ A 172.20.5.2 | @ A 172.20.5.3
    `,
  },
  {
    title: 'multicluster zones',
    zones: 'cluster.local clusterset.local',
    properties: ['multicluster clusterset.local'],
    rows: `
      mc.testns.svc.clusterset.local. A NOERROR @ A 10.9.0.1
      mc.testns.svc.clusterset.local. AAAA NODATA
      mc.testns.svc.clusterset.local. SRV NOERROR @ SRV 0 100 80 mc.testns.svc.clusterset.local. | + mc.testns.svc.clusterset.local. A 10.9.0.1
      _http._tcp.mc.testns.svc.clusterset.local. SRV NOERROR @ SRV 0 100 80 mc.testns.svc.clusterset.local. | + mc.testns.svc.clusterset.local. A 10.9.0.1
      mchdls.testns.svc.clusterset.local. A NOERROR @ A 172.40.0.1 | @ A 172.40.1.1
      mchdls.testns.svc.clusterset.local. SRV NOERROR @ SRV 0 50 80 db-0.east.mchdls.testns.svc.clusterset.local. | @ SRV 0 50 80 db-0.west.mchdls.testns.svc.clusterset.local. | + db-0.east.mchdls.testns.svc.clusterset.local. A 172.40.0.1 | + db-0.west.mchdls.testns.svc.clusterset.local. A 172.40.1.1
      db-0.east.mchdls.testns.svc.clusterset.local. A NOERROR @ A 172.40.0.1
      db-0.north.mchdls.testns.svc.clusterset.local. A NXDOMAIN
      db-0.mchdls.testns.svc.clusterset.local. A NXDOMAIN
      svc1.testns.svc.clusterset.local. A NXDOMAIN
      svc1.testns~ A NOERROR @ A 10.0.0.1
      mc.testns~ A NXDOMAIN
      testns.svc.clusterset.local. A NODATA
    `,
  },
  {
    title: 'ttl',
    zones: 'cluster.local',
    properties: ['ttl 3600'],
    rows: `
      svc1.testns~ A NOERROR @ 3600 A 10.0.0.1
      cluster.local. SOA NOERROR @ 300 SOA *
    `,
  },
  {
    title: 'fallthrough of some zones',
    zones: kubeadm,
    properties: ['fallthrough in-addr.arpa'],
    rows: `
      1.0.0.10.in-addr.arpa. PTR NOERROR @ PTR svc1.testns~
      9.9.9.9.in-addr.arpa. PTR NOERROR @ 303 PTR elsewhere.example.org.
      missing.testns~ A NXDOMAIN
    `,
  },
];
