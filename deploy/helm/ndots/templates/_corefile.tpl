{{- /* The Corefile that `servers` and `extraConfig` describe, and what follows from it: ports, and the permissions it needs. */ -}}

{{- define "ndots.corefile" -}}
{{- range $name, $directive := .Values.extraConfig }}
{{ $name }}{{ with $directive.parameters }} {{ . }}{{ end }}
{{- end }}
{{- range .Values.servers }}
{{ $keys := list }}
{{- range .zones }}{{ $keys = append $keys (printf "%s%s" (default "" .scheme) (default "." .zone)) }}{{ end }}
{{- join " " (default (list ".") $keys) }}{{ with .port }}:{{ . }}{{ end }} {
{{- range .plugins }}
    {{ .name }}{{ with .parameters }} {{ . }}{{ end }}{{ with .configBlock }} {
{{ . | trim | indent 8 }}
    }{{ end }}
{{- end }}
}
{{- end }}
{{- end -}}

{{- /*
The ports of `servers`, as JSON: a list of {number, servicePort, udp, tcp, nodePort, hostPort}, one for each port number.
A zone without scheme is served over UDP, and over TCP with use_tcp; tls://, https:// and grpc:// are TCP.
*/ -}}
{{- define "ndots.ports" -}}
{{- $ports := dict -}}
{{- range .Values.servers -}}
{{- $number := toString (default 53 .port) -}}
{{- $port := default (dict "number" (int $number) "udp" false "tcp" false) (get $ports $number) -}}
{{- if not (hasKey $port "servicePort") }}{{ $_ := set $port "servicePort" (int (default $number .servicePort)) }}{{ end -}}
{{- range default (list dict) .zones -}}
{{- if has (default "dns://" .scheme) (list "dns://") -}}
{{- $_ := set $port "udp" true -}}
{{- if .use_tcp }}{{ $_ := set $port "tcp" true }}{{ end -}}
{{- else -}}
{{- $_ := set $port "tcp" true -}}
{{- end -}}
{{- end -}}
{{- if .nodePort }}{{ $_ := set $port "nodePort" (int .nodePort) }}{{ end -}}
{{- if .hostPort }}{{ $_ := set $port "hostPort" (int .hostPort) }}{{ end -}}
{{- $_ := set $ports $number $port -}}
{{- end -}}
{{- values $ports | toJson -}}
{{- end -}}

{{- define "ndots.servicePorts" -}}
{{- range $port := fromJsonArray (include "ndots.ports" .) }}
{{- range $protocol := list "udp" "tcp" }}
{{- if get $port $protocol }}
- name: {{ $protocol }}-{{ int $port.number }}
  port: {{ int $port.servicePort }}
  protocol: {{ upper $protocol }}
  targetPort: {{ int $port.number }}
  {{- with $port.nodePort }}
  nodePort: {{ int . }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "ndots.containerPorts" -}}
{{- range $port := fromJsonArray (include "ndots.ports" .) }}
{{- range $protocol := list "udp" "tcp" }}
{{- if get $port $protocol }}
- name: {{ $protocol }}-{{ int $port.number }}
  containerPort: {{ int $port.number }}
  protocol: {{ upper $protocol }}
  {{- with $port.hostPort }}
  hostPort: {{ int . }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range (include "ndots.metricsPorts" . | splitList "," | uniq) }}
{{- if . }}
- name: tcp-{{ . }}
  containerPort: {{ int . }}
  protocol: TCP
{{- end }}
{{- end }}
{{- end -}}

{{- define "ndots.metricsPorts" -}}
{{- $ports := list -}}
{{- range .Values.servers -}}{{- range .plugins -}}
{{- if eq .name "prometheus" }}{{ $ports = append $ports (default "9153" .parameters | toString | regexFind "[0-9]+$" | default "9153") }}{{ end -}}
{{- end -}}{{- end -}}
{{- join "," $ports -}}
{{- end -}}

{{- /* The ports of `console` and `admin`, unless they are on the loopback interface, which is the default. */ -}}
{{- define "ndots.controlPorts" -}}
{{- $ports := list -}}
{{- range .Values.servers -}}{{- range .plugins -}}
{{- $address := default "localhost" .parameters | toString | trim -}}
{{- if and (has .name (list "admin" "console")) (not (regexMatch "^(localhost|127\\.|\\[::1\\])" $address)) }}{{ with regexFind "[0-9]+$" $address }}{{ $ports = append $ports . }}{{ end }}{{ end -}}
{{- end -}}{{- end -}}
{{- join "," (sortAlpha $ports) -}}
{{- end -}}

{{- /* "true" if a `kubernetes` block, or a file that extraConfig imports, may read pods. */ -}}
{{- define "ndots.readsPods" -}}
{{- $reads := false -}}
{{- range .Values.servers -}}{{- range .plugins -}}
{{- if and (eq .name "kubernetes") (regexMatch "(?m)^\\s*(pods\\s+verified|topology\\s+pods)\\b" (default "" .configBlock)) }}{{ $reads = true }}{{ end -}}
{{- end -}}{{- end -}}
{{- if .Values.extraConfig }}{{ $reads = true }}{{ end -}}
{{- $reads -}}
{{- end -}}

{{- /* "true" if the API server decides about the readers of `console`. */ -}}
{{- define "ndots.delegates" -}}
{{- $delegates := false -}}
{{- range .Values.servers -}}{{- range .plugins -}}
{{- if and (eq .name "console") (regexMatch "(?m)^\\s*auth\\s+kubernetes\\b" (default "" .configBlock)) }}{{ $delegates = true }}{{ end -}}
{{- end -}}{{- end -}}
{{- $delegates -}}
{{- end -}}

{{- /* "true" if a `kubernetes` block reads nodes. */ -}}
{{- define "ndots.readsNodes" -}}
{{- $reads := false -}}
{{- range .Values.servers -}}{{- range .plugins -}}
{{- if and (eq .name "kubernetes") (regexMatch "(?m)^\\s*topology\\s+(nodes|pods)\\b" (default "" .configBlock)) }}{{ $reads = true }}{{ end -}}
{{- end -}}{{- end -}}
{{- $reads -}}
{{- end -}}

{{- /* "true" if a `kubernetes` block serves a zone of the multi-cluster services API. */ -}}
{{- define "ndots.readsImports" -}}
{{- $reads := default false .Values.rbac.multiclusterEnable -}}
{{- range .Values.servers -}}{{- range .plugins -}}
{{- if and (eq .name "kubernetes") (regexMatch "(?m)^\\s*multicluster\\b" (default "" .configBlock)) }}{{ $reads = true }}{{ end -}}
{{- end -}}{{- end -}}
{{- $reads -}}
{{- end -}}
