{{- /* Unknown keys among the values, each with the key that was probably meant. */ -}}

{{- /* (dict "values" VALUES "known" KEYS "path" "" "all" ALL-PATHS): a line for each unknown key. */ -}}
{{- define "ndots.unknownKeys" -}}
{{- $in := . -}}
{{- range $key, $value := .values }}
{{- $path := printf "%s%s" $in.path $key }}
{{- if not (hasKey $in.known $key) }}
{{- $meant := include "ndots.nearestKey" (dict "path" $path "key" $key "folder" $in.path "siblings" (keys $in.known) "all" $in.all) }}
values: there is no key {{ $path }}{{ with $meant }}; did you mean {{ . }}?{{ end }}
{{- else }}
{{- $below := get $in.known $key }}
{{- if and (kindIs "map" $value) $below }}
{{- include "ndots.unknownKeys" (dict "values" $value "known" $below "path" (printf "%s." $path) "all" $in.all) }}
{{- else if and (kindIs "slice" $value) (hasKey $below "[]") }}
{{- range $at, $element := $value }}
{{- if kindIs "map" $element }}
{{- include "ndots.unknownKeys" (dict "values" $element "known" (get $below "[]") "path" (printf "%s[%d]." $path $at) "all" $in.all) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* All paths under KEYS except those in lists, one per line: (dict "known" KEYS "path" ""). */ -}}
{{- define "ndots.keyPaths" -}}
{{- $in := . -}}
{{- range $key, $below := .known }}
{{ $in.path }}{{ $key }}
{{- if not (hasKey $below "[]") }}
{{- include "ndots.keyPaths" (dict "known" $below "path" (printf "%s%s." $in.path $key)) }}
{{- end }}
{{- end }}
{{- end -}}

{{- /*
The path of the key that is spelled most alike: one beside it that differs in one place only, then one of the same name elsewhere,
then one that begins with it or is half the same from the beginning. Empty: none is like it.
*/ -}}
{{- define "ndots.nearestKey" -}}
{{- $in := . -}}
{{- $best := dict "differs" 3 "path" "" -}}
{{- range $one := sortAlpha .siblings -}}
{{- $differs := include "ndots.keysDiffer" (dict "one" (lower $one) "other" (lower $in.key)) | int -}}
{{- if lt $differs (int $best.differs) }}{{ $_ := set $best "differs" $differs }}{{ $_ := set $best "path" (printf "%s%s" $in.folder $one) }}{{ end -}}
{{- end -}}
{{- if not $best.path -}}
{{- range $one := .all -}}
{{- $last := splitList "." $one | last | lower -}}
{{- if and (not $best.path) (eq $last (lower $in.key)) }}{{ $_ := set $best "path" $one }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if not $best.path -}}
{{- range $one := sortAlpha .siblings -}}
{{- if and (not $best.path) (ge (len $in.key) 3) (hasPrefix (lower $in.key) (lower $one)) }}{{ $_ := set $best "path" (printf "%s%s" $in.folder $one) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if not $best.path -}}
{{- range $one := sortAlpha .siblings -}}
{{- $same := 0 -}}
{{- range $n := until (add (len $one) 1 | int) }}{{ if hasPrefix (substr 0 $n $one | lower) (lower $in.key) }}{{ $same = $n }}{{ end }}{{ end -}}
{{- if and (not $best.path) (ge (mul 2 $same | int) (max (len $one) (len $in.key) | int)) }}{{ $_ := set $best "path" (printf "%s%s" $in.folder $one) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $best.path -}}
{{- end -}}

{{- /* The number of letters in the longer word that are in neither the common prefix nor the common suffix. */ -}}
{{- define "ndots.keysDiffer" -}}
{{- $one := .one -}}
{{- $other := .other -}}
{{- $length := max (len $one) (len $other) | int -}}
{{- $shorter := min (len $one) (len $other) | int -}}
{{- $begin := 0 -}}
{{- range $n := until (add $shorter 1 | int) }}{{ if hasPrefix (substr 0 $n $one) $other }}{{ $begin = $n }}{{ end }}{{ end -}}
{{- $end := 0 -}}
{{- range $n := until (sub (add $shorter 1) $begin | int) }}{{ if hasSuffix (substr (sub (len $one) $n | int) (len $one) $one) $other }}{{ $end = $n }}{{ end }}{{ end -}}
{{- sub $length (add $begin $end) -}}
{{- end -}}
