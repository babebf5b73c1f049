{{- define "sluice.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of the objects, with room for a suffix. */}}
{{- define "sluice.fullname" -}}
{{- $name := include "sluice.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{ .Values.fullnameOverride | default $full | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The labels of the pods that serve. Pods of checks and tests have another component. */}}
{{- define "sluice.edge" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/component: edge
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.metadata" -}}
name: {{ include "sluice.fullname" . }}
namespace: {{ .Release.Namespace }}
labels: {{- include "sluice.labels" . | nindent 2 }}
{{- end }}

{{- define "sluice.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "sluice.serviceAccount" -}}
{{- $own := .Values.serviceAccount.create | ternary (include "sluice.fullname" .) "default" -}}
{{ .Values.serviceAccount.name | default $own }}
{{- end }}

{{- /* The kind of the workload. */}}
{{- define "sluice.kind" -}}
{{ or .Values.persistence.enabled .Values.peers.enabled | ternary "StatefulSet" "Deployment" }}
{{- end }}

{{- /* How many names the peers know. */}}
{{- define "sluice.peerCount" -}}
{{- $most := .Values.autoscaling.enabled | ternary .Values.autoscaling.maxReplicas .Values.replicaCount -}}
{{ max (int .Values.peers.names) (int $most) }}
{{- end }}

{{- /* The names of the StatefulSet's pods, with the port for peers. */}}
{{- define "sluice.peers" -}}
{{- $name := include "sluice.fullname" . -}}
{{- /* NB: the last dot, because a search domain of the node may have a wildcard, whose address would get the secret. */}}
{{- $domain := printf "%s-pods.%s.svc.%s." $name .Release.Namespace .Values.peers.clusterDomain -}}
{{ printf "%s-{0..%d}.%s:%d" $name (sub (include "sluice.peerCount" . | int) 1) $domain (int .Values.peers.port) }}
{{- end }}

{{- /* A size such as 10Gi in MiB. */}}
{{- define "sluice.mebibytes" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{ mul $number (dict "Mi" 1 "Gi" 1024 "Ti" 1048576 | dig (regexFind "[A-Z]i$" .) 1) }}
{{- end }}

{{- /* The size of the volume that holds the cache. */}}
{{- define "sluice.volumeSize" -}}
{{- $cache := include "sluice.mebibytes" .Values.cache.size | int64 -}}
{{ .Values.cache.volumeSize | default (printf "%dMi" (add (div (mul $cache 5) 4) 256)) }}
{{- end }}

{{- define "sluice.files" -}}
sites.yaml: |
  {{- $file := dict "sites" .Values.sites }}
  {{- $edge := dict }}
  {{- with .Values.purge.feed }}{{ $edge = dict "purge" (dict "feed" .) }}{{ end }}
  {{- with merge $edge .Values.edge }}{{ $file = set $file "edge" . }}{{ end }}
  {{- toYaml $file | nindent 2 }}
{{- range $name, $policy := .Values.policies }}
{{ $name }}: |
  {{- toYaml $policy | nindent 2 }}
{{- end }}
{{- end }}

{{- /* "true" if a site has the field of this name. */}}
{{- define "sluice.hasField" -}}
{{- range .sites }}{{ if hasKey . $.field }}true{{ break }}{{ end }}{{ end }}
{{- end }}

{{- define "sluice.purges" -}}
{{- if or .Values.purge.secretName (include "sluice.hasField" (dict "sites" .Values.sites "field" "purge_token")) -}}
true
{{- end }}
{{- end }}

{{- /* "true" if there may be more than one replica. */}}
{{- define "sluice.several" -}}
{{ if or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) }}true{{ end }}
{{- end }}

{{- define "sluice.tls" -}}
{{ include "sluice.hasField" (dict "sites" .Values.sites "field" "tls") }}
{{- end }}

{{- /* "true" if the edge listens for HTTP/3. */}}
{{- define "sluice.http3" -}}
{{ if eq (toString .Values.http3) "true" }}true{{ end }}
{{- end }}

{{- /* Refuses values that the schema cannot judge, because they depend on each other. */}}
{{- define "sluice.refuse" -}}
{{- with .Values }}
{{- if not .image.repository }}
{{- fail "image.repository: \"\": expected the repository to which the image of the edge was pushed, such as registry.example.com/sluice/edge" }}
{{- end }}
{{- if not .sites }}
{{- fail "sites: []: expected at least one site, such as [{name: www, origin: \"s3://my-bucket\"}]" }}
{{- end }}
{{- if hasKey .policies "sites.yaml" }}
{{- fail "policies: \"sites.yaml\": expected another name, because this is the file of the sites" }}
{{- end }}
{{- range .extraEnv }}
{{- if hasPrefix "SLUICE_" .name }}
{{- fail (printf "extraEnv: %q: expected settings of the edge in settings, and tokens in purge.secretName or secretEnv" .name) }}
{{- end }}
{{- end }}
{{- if and .http3 (not (include "sluice.tls" $)) }}
{{- fail (printf "http3: %v: expected false, or a site with tls, because HTTP/3 is always encrypted" .http3) }}
{{- end }}
{{- if dig "purge" "feed" "" .edge }}
{{- fail "edge.purge.feed: expected these fields in purge.feed" }}
{{- end }}
{{- if and (include "sluice.several" $) (include "sluice.purges" $) (not .purge.feed) }}
{{- fail "purge.feed: {}: purges are on (purge.secretName, or purge_token of a site), and a purge call reaches only one replica, because each has a cache of its own: expected purge.feed.every, such as 2s, so that all replicas read purges from the bucket (sluice purge --feed), or replicaCount 1 without autoscaling" }}
{{- end }}
{{- if and .peers.enabled (not .peers.secretName) }}
{{- fail (printf "peers.secretName: \"\": expected the Secret with a secret of the replicas, such as that of kubectl create secret generic peers --from-literal=%s=$(openssl rand -hex 24)" .peers.secretKey) }}
{{- end }}
{{- $count := include "sluice.peerCount" $ | int }}
{{- if and .peers.enabled (gt $count 256) }}
{{- fail (printf "peers.enabled: true: expected at most 256 replicas, and %s is %d" (.autoscaling.enabled | ternary "autoscaling.maxReplicas" "replicaCount") $count) }}
{{- end }}
{{- $cache := include "sluice.mebibytes" .cache.size | int64 }}
{{- $volume := include "sluice.mebibytes" (include "sluice.volumeSize" $) | int64 }}
{{- if lt (mul $volume 100) (mul $cache 115) }}
{{- fail (printf "cache.volumeSize: %q: expected at least 1.15 times cache.size, which is %q, or \"\"" .cache.volumeSize .cache.size) }}
{{- end }}
{{- if eq .cache.medium "memory" }}
{{- if .persistence.enabled }}
{{- fail "persistence.enabled: true: expected false with cache.medium memory" }}
{{- end }}
{{- $memory := include "sluice.mebibytes" .resources.limits.memory | int64 }}
{{- if lt $memory (add $volume 512) }}
{{- fail (printf "resources.limits.memory: %q: expected at least %dMi with cache.medium memory: the volume of the cache and 512Mi" .resources.limits.memory (add $volume 512)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
