package kubernetes

import (
	"context"
	"fmt"
	"hash/fnv"
	"sort"
	"strings"

	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() {
	record.Describer("kubernetes", func(_ context.Context, h any, r *dns.Msg) record.State {
		k, ok := h.(*Kubernetes)
		if !ok {
			byValue := h.(Kubernetes)
			k = &byValue
		}
		lines := []string{}
		for _, address := range k.localIPs {
			lines = append(lines, "bind "+address.String())
		}
		lines = append(lines, "kubernetes "+strings.Join(k.Zones, " ")+" {", "{SOURCE}")
		lines = append(lines, "pods "+k.podMode)
		names := []string{}
		for name := range k.Namespaces {
			names = append(names, name)
		}
		sort.Strings(names)
		if len(names) > 0 {
			lines = append(lines, "namespaces "+strings.Join(names, " "))
		}
		if _, real := k.APIConn.(*dnsControl); real && !k.opts.initEndpointsCache {
			lines = append(lines, "noendpoints")
		}
		if k.endpointNameMode {
			lines = append(lines, "endpoint_pod_names")
		}
		if k.opts.ignoreEmptyService {
			lines = append(lines, "ignore empty_service")
		}
		if k.opts.zonal {
			lines = append(lines, "zonal")
		}
		if len(k.opts.multiclusterZones) > 0 {
			lines = append(lines, "multicluster "+strings.Join(k.opts.multiclusterZones, " "))
		}
		if len(k.Fall.Zones) > 0 {
			lines = append(lines, "fallthrough "+strings.Join(k.Fall.Zones, " "))
		}
		lines = append(lines, fmt.Sprintf("ttl %d", k.ttl), "}")
		state := record.State{Lines: strings.Join(lines, "\n"), Unsynced: !k.APIConn.HasSynced()}
		state.Objects = objectsOf(k, r)
		return state
	})
}

func objectsOf(k *Kubernetes, r *dns.Msg) []any {
	objects := []any{}
	spaces := map[string]bool{}
	// A service counts even if it is only in the index of names, or only in the list.
	services := map[string]*object.Service{}
	for _, s := range k.APIConn.ServiceList() {
		services[s.Namespace+"/"+s.Name] = s
	}
	address := ""
	if len(r.Question) > 0 {
		address = dnsutil.ExtractAddressFromReverse(strings.ToLower(r.Question[0].Name))
		labels := dns.SplitDomainName(strings.ToLower(r.Question[0].Name))
		for at := 1; at < len(labels); at++ {
			for _, s := range k.APIConn.SvcIndex(object.ServiceKey(labels[at-1], labels[at])) {
				services[s.Namespace+"/"+s.Name] = s
			}
		}
	}
	for _, s := range k.APIConn.SvcIndexReverse(address) {
		services[s.Namespace+"/"+s.Name] = s
	}
	for _, s := range services {
		spaces[s.Namespace] = true
		service := api.Service{
			TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: meta.ObjectMeta{Name: s.Name, Namespace: s.Namespace},
			Spec: api.ServiceSpec{
				Type: s.Type, ExternalName: s.ExternalName, ClusterIPs: s.ClusterIPs, ExternalIPs: s.ExternalIPs,
			},
		}
		if len(s.ClusterIPs) > 0 {
			service.Spec.ClusterIP = s.ClusterIPs[0]
		}
		for _, port := range s.Ports {
			if port.Port != -1 {
				port.Protocol = api.Protocol(strings.ToUpper(string(port.Protocol)))
				service.Spec.Ports = append(service.Spec.Ports, port)
			}
		}
		objects = append(objects, service)
	}
	endpoints := map[string]*object.Endpoints{}
	add := func(all []*object.Endpoints) {
		for _, e := range all {
			endpoints[nameOf("slice", e)] = e
		}
	}
	add(k.APIConn.EndpointsList())
	for _, s := range services {
		add(k.APIConn.EpIndex(object.ServiceKey(s.Name, s.Namespace)))
	}
	add(k.APIConn.EpIndexReverse(address))
	for name, e := range endpoints {
		spaces[e.Namespace] = true
		objects = append(objects, slicesOf(e, name, nil)...)
	}
	for _, s := range k.APIConn.ServiceImportList() {
		spaces[s.Namespace] = true
		ports := []map[string]any{}
		for _, port := range s.Ports {
			ports = append(ports, map[string]any{"name": port.Name, "protocol": strings.ToUpper(string(port.Protocol)), "port": port.Port})
		}
		objects = append(objects, map[string]any{
			"apiVersion": "multicluster.x-k8s.io/v1alpha1",
			"kind":       "ServiceImport",
			"metadata":   map[string]any{"name": s.Name, "namespace": s.Namespace},
			"spec":       map[string]any{"type": s.Type, "ips": s.ClusterIPs, "ports": ports},
		})
		for _, e := range k.APIConn.McEpIndex(object.ServiceImportKey(s.Name, s.Namespace)) {
			objects = append(objects, slicesOf(&e.Endpoints, nameOf("multi", &e.Endpoints), e)...)
		}
	}
	if len(r.Question) > 0 {
		labels := dns.SplitDomainName(strings.ToLower(r.Question[0].Name))
		for _, label := range labels {
			spaces[label] = true
			address := strings.ReplaceAll(label, "-", ".")
			if strings.Count(label, "-") != 3 {
				address = strings.ReplaceAll(label, "-", ":")
			}
			for _, p := range k.APIConn.PodIndex(address) {
				spaces[p.Namespace] = true
				objects = append(objects, api.Pod{
					TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
					ObjectMeta: meta.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
					Status:     api.PodStatus{PodIP: p.PodIP, PodIPs: []api.PodIP{{IP: p.PodIP}}, Phase: api.PodRunning},
				})
			}
		}
	}
	for name := range spaces {
		if _, err := k.APIConn.GetNamespaceByName(name); err == nil {
			objects = append(objects, api.Namespace{
				TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
				ObjectMeta: meta.ObjectMeta{Name: name},
			})
		}
	}
	return objects
}

// nameOf derives a name from the contents of endpoints, because the tests' lists come in any order.
func nameOf(kind string, e *object.Endpoints) string {
	hash := fnv.New64()
	fmt.Fprint(hash, e.Index, e.Namespace, e.Subsets, e.Zones)
	return fmt.Sprintf("%s-%x", kind, hash.Sum64())
}

func slicesOf(e *object.Endpoints, name string, multi *object.MultiClusterEndpoints) []any {
	slices := []any{}
	service, _, _ := strings.Cut(e.Index, ".")
	labels := map[string]string{discovery.LabelServiceName: service}
	if multi != nil {
		labels = map[string]string{
			"multicluster.kubernetes.io/service-name":   service,
			"multicluster.kubernetes.io/source-cluster": multi.ClusterId,
		}
	}
	for at, subset := range e.Subsets {
		for family, colon := range map[discovery.AddressType]bool{discovery.AddressTypeIPv4: false, discovery.AddressTypeIPv6: true} {
			slice := discovery.EndpointSlice{
				TypeMeta:    meta.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
				ObjectMeta:  meta.ObjectMeta{Name: fmt.Sprintf("%s-%d-%s", name, at, strings.ToLower(string(family))), Namespace: e.Namespace, Labels: labels},
				AddressType: family,
			}
			for _, a := range subset.Addresses {
				if strings.Contains(a.IP, ":") != colon {
					continue
				}
				endpoint := discovery.Endpoint{Addresses: []string{a.IP}}
				if a.Hostname != "" {
					endpoint.Hostname = &a.Hostname
				}
				if a.NodeName != "" {
					endpoint.NodeName = &a.NodeName
				}
				if a.TargetRefName != "" {
					endpoint.TargetRef = &api.ObjectReference{Kind: "Pod", Name: a.TargetRefName}
				}
				if zone, ok := e.Zones[a.IP]; ok {
					endpoint.Zone = &zone
				}
				slice.Endpoints = append(slice.Endpoints, endpoint)
			}
			for _, p := range subset.Ports {
				if p.Port == -1 {
					continue
				}
				protocol := api.Protocol(strings.ToUpper(p.Protocol))
				slice.Ports = append(slice.Ports, discovery.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &protocol})
			}
			if len(slice.Endpoints) > 0 || !colon {
				slices = append(slices, slice)
			}
		}
	}
	return slices
}
