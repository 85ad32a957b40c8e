/**
 * Defaults that suit most clusters, so that stories can leave them out: a Corefile, a DNS service, and a cloud's search
 * domains.
 */

/**
 * kubeadm's Corefile, but with the lab's API server instead of the cluster's, and the lab's internet instead of the
 * node's resolv.conf.
 */
export const usualCorefile: string = `.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint @API@
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    forward . 192.0.2.53
    cache 30 {
        disable success cluster.local
        disable denial cluster.local
    }
    loop
    loadbalance
}
`;

/** The address of the lab internet's DNS server. */
export const INTERNET: string = '192.0.2.53';

/** The node's own resolv.conf. The search domains are from the Datadog story. */
export const usualNodeResolvConf: string = `search c.sandbox.internal google.internal\nnameserver ${INTERNET}\n`;

/** Builds the DNS service with this many pods, along with the objects that every cluster has. */
export function usualObjects(dnsPods = 1): string {
  const pods = Array.from(
    { length: dnsPods },
    (_, index) => `---
apiVersion: v1
kind: Pod
metadata:
  namespace: kube-system
  name: dns-${index + 1}
  labels: { k8s-app: kube-dns }
spec:
  dnsPolicy: Default
  nodeName: node-${index + 1}
  containers:
    - name: dns
      ports:
        - { containerPort: 53, name: dns, protocol: UDP }
        - { containerPort: 53, name: dns-tcp, protocol: TCP }
status: { podIP: 10.244.${index + 1}.53 }
`,
  );
  return `---
apiVersion: v1
kind: Service
metadata: { namespace: default, name: kubernetes }
spec:
  clusterIP: 10.96.0.1
  ports: [{ name: https, port: 443, targetPort: 6443 }]
${dnsService('kube-dns', '10.96.0.10')}${pods.join('')}`;
}

/** Builds a pod that is only a client. */
export function clientPod(name: string, ip: string): string {
  return `---
apiVersion: v1
kind: Pod
metadata: { namespace: default, name: ${name}, labels: { app: ${name} } }
spec:
  nodeName: node-1
  containers: [{ name: ${name} }]
status: { podIP: ${ip} }
`;
}

/**
 * The service through which node caches query the DNS pods. On their own nodes, the caches take over the DNS service's
 * address.
 */
export const upstreamService: string = dnsService('kube-dns-upstream', '10.96.0.11');

function dnsService(name: string, clusterIP: string): string {
  return `---
apiVersion: v1
kind: Service
metadata: { namespace: kube-system, name: ${name} }
spec:
  clusterIP: ${clusterIP}
  selector: { k8s-app: kube-dns }
  ports:
    - { name: dns, port: 53, protocol: UDP }
    - { name: dns-tcp, port: 53, protocol: TCP }
`;
}

/** NodeLocal DNSCache's Corefile template, but with the lab's internet instead of the node's resolv.conf. */
export const usualNodeCorefile: string = `cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {
    errors
    cache {
        success 9984 30
        denial 9984 5
    }
    reload
    bind __PILLAR__LOCAL__DNS__
    forward . __PILLAR__CLUSTER__DNS__ {
        force_tcp
        max_concurrent 16384
    }
    prometheus :9253
    health 169.254.20.10:8080
}
.:53 {
    errors
    cache 30
    reload
    bind __PILLAR__LOCAL__DNS__
    forward . ${INTERNET} {
        max_concurrent 16384
    }
    prometheus :9253
}
`;
