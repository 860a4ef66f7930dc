{{- /* The roles of those who ask the scheduler, and their bindings: docs/kubectl.md. */}}
{{- define "poseidon.userRoles" -}}
{{- $name := include "poseidon.fullname" . }}
{{- $home := .Release.Namespace }}
{{- $leases := .Values.leaderElection.leaseNamespace }}
{{- $forward := dict "apiGroups" (list "") "resources" (list "pods/portforward") "verbs" (list "get" "create") }}
{{- $find := dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases")
  "resourceNames" (list (include "poseidon.leaseName" .)) "verbs" (list "get") }}
{{- $read := dict "nonResourceURLs" (list "/identity" "/status" "/explain" "/devices" "/gangs" "/queue" "/queues" "/jobs" "/jobs/*" "/network" "/rebalance")
  "verbs" (list "get") }}
{{- $fits := dict "nonResourceURLs" (list "/fits") "verbs" (list "post") }}
{{- include "poseidon.userRole" (dict "root" . "kind" "ClusterRole" "name" (printf "%s-viewer" $name) "namespace" ""
  "rules" (list $read $fits) "subjects" .Values.access.viewers) }}
{{- if .Values.dashboard.enabled }}
{{- $page := dict "nonResourceURLs" (list "/dashboard/*") "verbs" (list "get") }}
{{- include "poseidon.userRole" (dict "root" . "kind" "ClusterRole" "name" (printf "%s-dashboard" $name) "namespace" ""
  "rules" (list $page) "subjects" .Values.dashboard.users) }}
{{- end }}
{{- $rules := list $forward }}
{{- if eq $home $leases }}{{ $rules = append $rules $find }}{{ end }}
{{- include "poseidon.userRole" (dict "root" . "kind" "Role" "name" (printf "%s-kubectl" $name) "namespace" $home
  "rules" $rules "subjects" .Values.access.kubectl) }}
{{- if ne $home $leases }}
{{- include "poseidon.userRole" (dict "root" . "kind" "Role" "name" (printf "%s-kubectl" $name) "namespace" $leases
  "rules" (list $find) "subjects" .Values.access.kubectl) }}
{{- end }}
{{- end }}

{{- /* A role, and its binding if it has subjects: root, kind, name, namespace, rules, subjects. */}}
{{- define "poseidon.userRole" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "poseidon.labels" (list .root "access") | nindent 4 }}
rules:
  {{- toYaml .rules | nindent 2 }}
{{- if .subjects }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "poseidon.labels" (list .root "access") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  {{- toYaml .subjects | nindent 2 }}
{{- end }}
{{- end }}
