{{- /* The text of a setting: off is a boolean in YAML. */}}
{{- define "poseidon.word" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else }}{{ toString . }}{{ end }}
{{- end }}

{{- /* The value at a path such as queues.kind in a configuration: {"value": ...}; without it if there is none. */}}
{{- define "poseidon.setting" -}}
{{- $at := dict "value" .config }}
{{- range splitList "." .path }}
{{- if and (hasKey $at "value") (kindIs "map" $at.value) (hasKey $at.value .) }}
{{- $at = dict "value" (get $at.value .) }}
{{- else }}{{ $at = dict }}
{{- end }}
{{- end }}
{{- toJson $at }}
{{- end }}

{{- /* Whether one of the alternatives of `when` holds: "yes" or nothing. */}}
{{- define "poseidon.holds" -}}
{{- $settings := .settings }}
{{- range $alternative := .when }}
  {{- $all := true }}
  {{- range $key, $values := $alternative }}
    {{- $has := include "poseidon.word" (get $settings $key) }}
    {{- $one := false }}
    {{- range $values }}
      {{- $value := include "poseidon.word" . }}
      {{- if or (eq $value $has) (and (eq $value "any") (not (has $has (list "" "off")))) }}{{ $one = true }}{{ end }}
    {{- end }}
    {{- if not $one }}{{ $all = false }}{{ end }}
  {{- end }}
  {{- if $all }}yes{{ end }}
{{- end }}
{{- end }}

{{- /* The rules of an account in one place: root, account, namespace (see rights.yaml), config, lease. */}}
{{- define "poseidon.rules" -}}
{{- $table := .root.Files.Get "rights.yaml" | replace "LEASE_NAME" (toJson .lease) | fromYaml }}
{{- $settings := deepCopy $table.settings }}
{{- range $path, $_ := $table.settings }}
  {{- $given := include "poseidon.setting" (dict "config" $.config "path" $path) | fromJson }}
  {{- if and (hasKey $given "value") (not (kindIs "invalid" $given.value)) }}{{ $_ := set $settings $path $given.value }}{{ end }}
{{- end }}
{{- $rules := list }}
{{- range $entry := get $table .account }}
  {{- if eq (default "" $entry.namespace) $.namespace }}
    {{- if or (not $entry.when) (include "poseidon.holds" (dict "when" $entry.when "settings" $settings)) }}
      {{- $rules = concat $rules $entry.rules }}
    {{- end }}
  {{- end }}
{{- end }}
{{- $rules | uniq | toYaml }}
{{- end }}

{{- /* The roles of an account, and their bindings: root, account, component, name, serviceAccount, config, lease,
extraRules. */}}
{{- define "poseidon.roles" -}}
{{- $with := . }}
{{- $labels := include "poseidon.labels" (list .root .component) }}
{{- $places := dict "" "" "lease" .root.Values.leaderElection.leaseNamespace "hooks" .root.Values.hooks.namespace }}
{{- range $place, $namespace := $places }}
{{- $rules := include "poseidon.rules" (merge (dict "namespace" $place) $with) | fromYamlArray }}
{{- if not $place }}{{ $rules = concat $rules $with.extraRules }}{{ end }}
{{- $kind := ternary "Role" "ClusterRole" (ne $place "") }}
{{- $name := ternary (printf "%s-hooks" $with.name) $with.name (eq $place "hooks") }}
{{- if $rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- $labels | nindent 4 }}
rules:
  {{- toYaml $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $with.serviceAccount }}
    namespace: {{ $with.root.Release.Namespace }}
{{- end }}
{{- end }}
{{- end }}
