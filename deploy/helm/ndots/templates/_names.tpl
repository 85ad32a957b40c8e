{{- /* Names, labels and selectors, as in the coredns chart, so that an adopted release keeps its objects. */ -}}

{{- define "ndots.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "ndots.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ndots.deploymentName" -}}
{{- default (include "ndots.fullname" .) .Values.deployment.name -}}
{{- end -}}

{{- define "ndots.serviceAccountName" -}}
{{- default (ternary (include "ndots.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "ndots.clusterRoleName" -}}
{{- default (include "ndots.fullname" .) .Values.clusterRole.nameOverride -}}
{{- end -}}

{{- define "ndots.k8sApp" -}}
{{- default (include "ndots.name" .) .Values.k8sAppLabelOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* The pod selector. It never changes in a release, because a Deployment's selector is immutable. */ -}}
{{- define "ndots.selector" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/name: {{ include "ndots.name" . }}
{{- if .Values.isClusterService }}
k8s-app: {{ include "ndots.k8sApp" . }}
{{- end }}
{{- end -}}

{{- define "ndots.labels" -}}
{{ include "ndots.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version) | quote }}
{{- if .Values.isClusterService }}
kubernetes.io/cluster-service: "true"
kubernetes.io/name: CoreDNS
{{- end }}
{{- end -}}

{{- /*
The metadata of an object: (dict "root" $ "name" NAME "labels" EXTRA "annotations" LIST-OF-MAPS "clusterWide" BOOL).
*/ -}}
{{- define "ndots.metadata" -}}
{{- $root := .root -}}
{{- $labels := merge (deepCopy (default dict .labels)) (deepCopy (default dict $root.Values.customLabels)) (fromYaml (include "ndots.labels" $root)) -}}
{{- $annotations := deepCopy (default dict $root.Values.customAnnotations) -}}
{{- range .annotations }}{{ $annotations = merge $annotations (deepCopy (default dict .)) }}{{ end -}}
name: {{ .name }}
{{- if not .clusterWide }}
namespace: {{ default $root.Release.Namespace .namespace }}
{{- end }}
labels: {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The labels that distinguish a part's objects from the DNS server's: (dict "root" $ "part" "webhook"), as YAML. */ -}}
{{- define "ndots.partLabels" -}}
app.kubernetes.io/name: {{ include "ndots.name" .root }}-{{ .part }}
{{- if .root.Values.isClusterService }}
k8s-app: {{ include "ndots.k8sApp" .root }}-{{ .part }}
{{- end }}
{{- end -}}

{{- /* An image of this chart: (dict "root" $ "image" VALUES); missing values are the DNS server's. */ -}}
{{- define "ndots.image" -}}
{{- $usual := .root.Values.image -}}
{{- default $usual.repository .image.repository }}:{{ .image.tag | default $usual.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{- /* The image with all commands, for the other parts: (dict "root" $ "image" VALUES); missing values are those of toolsImage. */ -}}
{{- define "ndots.toolsImage" -}}
{{- $tools := default dict .root.Values.toolsImage -}}
{{- $repository := default (printf "%s-tools" .root.Values.image.repository) $tools.repository -}}
{{- $tag := $tools.tag | default .root.Values.image.tag | default .root.Chart.AppVersion -}}
{{- default $repository .image.repository }}:{{ .image.tag | default $tag }}
{{- end -}}

{{- /* The security context of an ndots container: (dict "root" $ "profile" "serve" "context" VALUES), as YAML; empty if there is none. */ -}}
{{- define "ndots.security" -}}
{{- $context := deepCopy (default dict .context) -}}
{{- with .root.Values.seccompDirectory -}}
{{- $_ := set $context "seccompProfile" (dict "type" "Localhost" "localhostProfile" (printf "%s/%s.json" (trimSuffix "/" .) $.profile)) -}}
{{- end -}}
{{- with $context }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- /* The name of the Service that pods query. */ -}}
{{- define "ndots.serviceName" -}}
{{- default (include "ndots.fullname" .) .Values.service.name -}}
{{- end -}}

{{- /* NAMESPACE/NAME of the Service that pods query: this release's, or the cluster's if the release creates none. */ -}}
{{- define "ndots.askedService" -}}
{{- if and .Values.deployment.enabled .Values.service.create -}}
{{- .Release.Namespace }}/{{ include "ndots.serviceName" . -}}
{{- else -}}
kube-system/{{ default "kube-dns" .Values.service.name -}}
{{- end -}}
{{- end -}}

{{- /* The pod selector as JSON, for kubectl patch. */ -}}
{{- define "ndots.selectorPatch" -}}
{{- dict "spec" (dict "selector" (fromYaml (include "ndots.selector" .))) | toJson -}}
{{- end -}}

{{- /* Fails if another Service has the address, and explains how to replace it without a gap. */ -}}
{{- define "ndots.addressIsFree" -}}
{{- $own := include "ndots.serviceName" . -}}
{{- with .Values.service.clusterIP -}}
{{- range (lookup "v1" "Service" $.Release.Namespace "").items -}}
{{- if and (has $.Values.service.clusterIP (concat (list .spec.clusterIP) (default list .spec.clusterIPs))) (ne .metadata.name $own) -}}
{{- fail (printf "\n\nservice.clusterIP: %s is the address of Service %s/%s. To replace it without a gap:\n\n1. Install without a Service: --set service.create=false --set k8sAppLabelOverride=kube-dns --wait\n2. Make that Service select the new pods; the installation notes print the command.\n\nMore: deploy/README.md, \"Beside kubeadm's CoreDNS\".\n" $.Values.service.clusterIP .metadata.namespace .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
