{{- define "poseidon.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "poseidon.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "poseidon.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "poseidon.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Of one component: a list of the root and the name of the component. */}}
{{- define "poseidon.selectorLabels" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ include "poseidon.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{- define "poseidon.labels" -}}
{{- $root := first . -}}
{{ include "poseidon.selectorLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: poseidon
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "poseidon.accountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "poseidon.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "poseidon.image" -}}
{{- $image := .Values.image }}
{{- $name := $image.repository }}
{{- with $image.registry }}{{ $name = printf "%s/%s" . $name }}{{ end }}
{{- if $image.digest }}{{ printf "%s@%s" $name $image.digest }}
{{- else }}{{ printf "%s:%s" $name (default .Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{- define "poseidon.schedulerNames" -}}
{{- if kindIs "string" .Values.schedulerName }}{{ list .Values.schedulerName | toJson }}
{{- else }}{{ .Values.schedulerName | toJson }}
{{- end }}
{{- end }}

{{- define "poseidon.leaseName" -}}
{{- if .Values.leaderElection.leaseName }}{{ .Values.leaderElection.leaseName }}
{{- else if has "default-scheduler" (include "poseidon.schedulerNames" . | fromJsonArray) }}kube-scheduler
{{- else }}poseidon
{{- end }}
{{- end }}

{{- /* The file of --config. */}}
{{- define "poseidon.config" -}}
{{- $profiles := list }}
{{- range include "poseidon.schedulerNames" . | fromJsonArray }}
{{- $profiles = append $profiles (dict "schedulerName" . "policy" $.Values.policy) }}
{{- end }}
{{- $own := dict
  "apiVersion" "poseidon.io/v1"
  "kind" "PoseidonConfiguration"
  "profiles" $profiles
  "leaderElection" (dict
    "leaderElect" .Values.leaderElection.enabled
    "resourceName" (include "poseidon.leaseName" .)
    "resourceNamespace" .Values.leaderElection.leaseNamespace)
  "serving" (dict
    "healthAddress" .Values.bindAddress
    "healthPort" .Values.health.port
    "bindAddress" .Values.bindAddress
    "securePort" .Values.metrics.port
    "dashboard" .Values.dashboard.enabled) }}
{{- if .Values.metrics.tlsSecret }}
{{- $_ := set $own "serving" (merge (dict "certFile" "/etc/poseidon-tls/tls.crt" "keyFile" "/etc/poseidon-tls/tls.key") $own.serving) }}
{{- end }}
{{- if .Values.hooks.enabled }}{{ $_ := set $own "jobs" (dict "hooksFile" "/etc/poseidon/hooks.yaml") }}{{ end }}
{{- mergeOverwrite (deepCopy .Values.config) $own | toYaml }}
{{- end }}

{{- define "poseidon.hooksConfig" -}}
{{- $root := first . }}
{{- merge (dict "namespace" $root.Values.hooks.namespace) (deepCopy (last .)) | toYaml }}
{{- end }}
