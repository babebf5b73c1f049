{{- /* The environment of the edge. */}}
{{- define "sluice.env" -}}
{{- $env := list }}
{{- with .Values }}
{{- $own := dict
  "SLUICE_SITES" "/etc/sluice/sites/sites.yaml"
  "SLUICE_WATCH" (eq .reload "watch" | ternary "on" "off")
  "SLUICE_BIND" .bind
  "SLUICE_METRICS_BIND" .bind
  "SLUICE_METRICS_PORT" "9901"
  "SLUICE_CONCURRENCY" (toString .workers)
  "SLUICE_RUNTIME" .runtime
  "SLUICE_MIN_DRAIN_SECONDS" (toString .minDrainSeconds)
  "SLUICE_DRAIN_SECONDS" (toString .drainSeconds)
  "SLUICE_CACHE" .cache.medium
  "SLUICE_CACHE_MAX_BYTES" .cache.size
  "SLUICE_CACHE_MAX_ENTRIES" (printf "%d" (int64 .cache.maxEntries))
  "SLUICE_CACHE_RESERVE" (.cache.reserve | default (.persistence.enabled | ternary "5%" "15%"))
  "AWS_EC2_METADATA_DISABLED" (.instanceMetadata | ternary "false" "true") }}
{{- if eq .cache.medium "memory" }}{{ $_ := set $own "SLUICE_CACHE_RESERVE" (.cache.reserve | default "0") }}{{ end }}
{{- if include "sluice.purges" $ }}
{{- $own = merge $own (dict "SLUICE_PURGE_BIND" .bind "SLUICE_PURGE_PORT" (toString .purge.port)) }}
{{- end }}
{{- if .peers.enabled }}
{{- $port := toString .peers.port }}
{{- $own = merge $own (dict "SLUICE_PEERS" (include "sluice.peers" $) "SLUICE_PEER_BIND" .bind "SLUICE_PEER_PORT" $port) }}
{{- $own = merge $own (dict "SLUICE_PEER_SECRET_FILE" "/etc/sluice/peers/secret") }}
{{- end }}
{{- if .http3 }}
{{- $own = merge $own (dict "SLUICE_HTTP3" (eq (toString .http3) "true" | ternary "on" "clear")) }}
{{- end }}
{{- if include "sluice.http3" $ }}
{{- $own = merge $own (dict "SLUICE_HTTP3_PORT" (toString .service.ports.https)) }}
{{- end }}
{{- with .webIdentity.roleArn }}
{{- $own = merge $own (dict "AWS_ROLE_ARN" . "AWS_WEB_IDENTITY_TOKEN_FILE" "/var/run/secrets/sluice/token") }}
{{- end }}
{{- with .certificateAuthorities }}
{{- if .configMap }}{{ $_ := set $own "SSL_CERT_FILE" (printf "/etc/sluice/authorities/%s" .key) }}{{ end }}
{{- end }}
{{- range $name, $value := merge $own .settings }}
{{- $env = append $env (dict "name" $name "value" (toString $value)) }}
{{- end }}
{{- if .purge.secretName }}
{{- $key := dict "name" .purge.secretName "key" .purge.secretKey }}
{{- $env = append $env (dict "name" "SLUICE_PURGE_TOKEN" "valueFrom" (dict "secretKeyRef" $key)) }}
{{- else }}
{{- /* So a token in a Secret of secretEnv does not turn purges on unnoticed. */}}
{{- $env = append $env (dict "name" "SLUICE_PURGE_TOKEN" "value" "") }}
{{- end }}
{{- toYaml (concat $env .extraEnv) }}
{{- end }}
{{- end }}

{{- /* A container of the edge's image, without probes and ports. */}}
{{- define "sluice.container" -}}
image: {{ include "sluice.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# A refused start names its causes in the last lines of the log, which `kubectl describe pod` shows then.
terminationMessagePolicy: FallbackToLogsOnError
securityContext: {{- toYaml .Values.securityContext | nindent 2 }}
{{- end }}

{{- /* The fields of every pod of the chart. */}}
{{- define "sluice.pod" -}}
automountServiceAccountToken: false
# A Service named SLUICE… would set variables that look like settings.
enableServiceLinks: false
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The environment and the mounts of the edge, for the container that serves and for the one that checks. */}}
{{- define "sluice.inputs" -}}
env: {{- include "sluice.env" . | nindent 0 }}
{{- with .Values.secretEnv }}
envFrom:
{{- range . }}
- secretRef: {name: {{ . }}}
{{- end }}
{{- end }}
volumeMounts:
- {name: sites, mountPath: /etc/sluice/sites, readOnly: true}
- {name: state, mountPath: /var/lib/sluice}
{{- if eq .Values.cache.medium "memory" }}
- {name: memory, mountPath: /dev/shm}
{{- end }}
{{- range $index, $name := .Values.tlsSecrets }}
- {name: tls-{{ $index }}, mountPath: /etc/sluice/tls/{{ $name }}, readOnly: true}
{{- end }}
{{- if .Values.peers.enabled }}
- {name: peers, mountPath: /etc/sluice/peers, readOnly: true}
{{- end }}
{{- if .Values.certificateAuthorities.configMap }}
- {name: authorities, mountPath: /etc/sluice/authorities, readOnly: true}
{{- end }}
{{- if .Values.webIdentity.roleArn }}
- {name: web-identity, mountPath: /var/run/secrets/sluice, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The volumes, without `state`, whose files the ConfigMap `files` has. */}}
{{- define "sluice.volumes" -}}
{{- with .top.Values }}
# NB: folders, because the kubelet does not update a file that is mounted by subPath.
- name: sites
  configMap: {name: {{ $.files }}}
{{- if eq .cache.medium "memory" }}
- name: memory
  emptyDir: {medium: Memory, sizeLimit: {{ include "sluice.volumeSize" $.top }}}
{{- end }}
{{- range $index, $name := .tlsSecrets }}
- name: tls-{{ $index }}
  secret: {secretName: {{ $name }}}
{{- end }}
{{- with .peers }}
{{- if .enabled }}
- name: peers
  secret: {secretName: {{ .secretName }}, items: [{key: {{ .secretKey }}, path: secret}]}
{{- end }}
{{- end }}
{{- with .certificateAuthorities }}
{{- if .configMap }}
- name: authorities
  configMap: {name: {{ .configMap }}}
{{- end }}
{{- end }}
{{- with .webIdentity }}
{{- if .roleArn }}
- name: web-identity
  projected:
    sources:
    - serviceAccountToken: {path: token, audience: {{ .audience }}, expirationSeconds: {{ int .expirationSeconds }}}
{{- end }}
{{- end }}
{{- with .extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A probe of the metrics' listener, because clients cannot use up its connections. */}}
{{- define "sluice.probe" -}}
httpGet: {path: {{ .top.Values.settings.SLUICE_HEALTH_PATH | default "/healthz" }}, port: metrics}
{{ toYaml .probe }}
{{- end }}
