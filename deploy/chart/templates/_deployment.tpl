{{- /* A Deployment: root, component, name, serviceAccount, args, port, metricsPort, replicas, resources, checksum (of what is mounted at
/etc/poseidon, empty: nothing is), keysSecret. */}}
{{- define "poseidon.deployment" -}}
{{- $values := .root.Values }}
{{- $selector := include "poseidon.selectorLabels" (list .root .component) }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "poseidon.labels" (list .root .component) | nindent 4 }}
  {{- with $values.deploymentAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  replicas: {{ .replicas }}
  revisionHistoryLimit: {{ $values.revisionHistoryLimit }}
  {{- with $values.updateStrategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "poseidon.labels" (list .root .component) | nindent 8 }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- $annotations := deepCopy $values.podAnnotations }}
      {{- if .checksum }}{{ $_ := set $annotations "checksum/config" .checksum }}{{ end }}
      {{- with $annotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .serviceAccount }}
      {{- with $values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- if $values.hostNetwork }}
      hostNetwork: true
      {{- end }}
      dnsPolicy: {{ default (ternary "ClusterFirstWithHostNet" "ClusterFirst" $values.hostNetwork) $values.dnsPolicy }}
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      securityContext:
        {{- toYaml $values.podSecurityContext | nindent 8 }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
        {{- if $values.affinity }}
        {{- toYaml $values.affinity | nindent 8 }}
        {{- else }}
        podAntiAffinity: # a node that dies takes one replica with it
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    {{- $selector | nindent 20 }}
        {{- end }}
      topologySpreadConstraints:
        {{- if $values.topologySpreadConstraints }}
        {{- toYaml $values.topologySpreadConstraints | nindent 8 }}
        {{- else }}
        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- $selector | nindent 14 }}
        {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "poseidon.image" .root | quote }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args:
            {{- toYaml .args | nindent 12 }}
          env: # by which the leader says on its lease which pod it is
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
            {{- with $values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - {name: health, containerPort: {{ .port }}, protocol: TCP}
            - {name: metrics, containerPort: {{ .metricsPort }}, protocol: TCP}
          {{- with $values.startupProbe }}
          startupProbe:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          livenessProbe:
            {{- toYaml $values.livenessProbe | nindent 12 }}
          readinessProbe:
            {{- toYaml $values.readinessProbe | nindent 12 }}
          resources:
            {{- toYaml .resources | nindent 12 }}
          securityContext:
            {{- toYaml $values.securityContext | nindent 12 }}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- if .checksum }}
            - {name: config, mountPath: /etc/poseidon, readOnly: true}
            {{- end }}
            {{- if .keysSecret }}
            - {name: hook-keys, mountPath: /etc/poseidon-hook-keys, readOnly: true}
            {{- end }}
            {{- if $values.metrics.tlsSecret }}
            - {name: tls, mountPath: /etc/poseidon-tls, readOnly: true}
            {{- end }}
            {{- with $values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        {{- if .checksum }}
        - name: config # read at the start
          configMap: {name: {{ .name }}}
        {{- end }}
        {{- with .keysSecret }}
        - name: hook-keys # read again when they change
          secret: {secretName: {{ . }}}
        {{- end }}
        {{- with $values.metrics.tlsSecret }}
        - name: tls # likewise
          secret: {secretName: {{ . }}}
        {{- end }}
        {{- with $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}
