{{/* What stands before the name of each object. */}}
{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The services, each with the name of its section of the values, as JSON. */}}
{{- define "sluice.services" -}}
{"ingest-api": "ingestApi", "query-api": "queryApi", {{ if .Values.trenchApi.enabled }}"trench-api": "trenchApi", {{ end }}"writer": "writer"}
{{- end -}}

{{/* Those with an HTTP interface for others, as JSON. */}}
{{- define "sluice.openServices" -}}
{{- omit (include "sluice.services" . | fromJson) "writer" | toJson -}}
{{- end -}}

{{/*
What is deployed, as a JSON object: the end of the name of each Deployment, with its service, and of a writer the ClickHouse
server of clickhouse.servers that it stores into ("" without servers).
*/}}
{{- define "sluice.deployments" -}}
{{- $deployments := dict -}}
{{- range $service, $section := include "sluice.services" . | fromJson -}}
{{- $servers := eq $service "writer" | ternary $.Values.clickhouse.servers list -}}
{{- range $servers -}}
{{- $_ := set $deployments (printf "%s-%s" $service .name) (dict "service" $service "section" $section "server" .name) -}}
{{- else -}}
{{- $_ := set $deployments $service (dict "service" $service "section" $section "server" "") -}}
{{- end -}}
{{- end -}}
{{- $deployments | toJson -}}
{{- end -}}

{{/*
The labels that select pods; they never change. Takes (dict "root" $ "service" NAME), for one of several writers also
"server" NAME; so do the others.
*/}}
{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .service }}
{{- with .server }}
sluice/server: {{ . }}
{{- end }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "sluice.image" -}}
{{- $section := get .root.Values (get (include "sluice.services" .root | fromJson) .service) -}}
{{- $image := .root.Values.image -}}
{{- printf "%s-%s:%s" $image.repository .service ($section.tag | default $image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}

{{/* The addresses of ClickHouse, as JSON. */}}
{{- define "sluice.clickHouseUrls" -}}
{{- $urls := list -}}
{{- range .Values.clickhouse.servers -}}
{{- $urls = append $urls .url -}}
{{- else -}}
{{- $urls = append $urls .Values.clickhouse.url -}}
{{- end -}}
{{- $urls | toJson -}}
{{- end -}}

{{/* The ports of ClickHouse, each once, as JSON. */}}
{{- define "sluice.clickHousePorts" -}}
{{- $ports := list -}}
{{- range include "sluice.clickHouseUrls" . | fromJsonArray -}}
{{- $ports = append $ports (include "sluice.portOf" . | int) | uniq -}}
{{- end -}}
{{- $ports | toJson -}}
{{- end -}}

{{/* The ports of the brokers, each once, as JSON. */}}
{{- define "sluice.kafkaPorts" -}}
{{- $ports := list -}}
{{- range .Values.kafka.brokers -}}
{{- $ports = append $ports (regexFind "[0-9]+$" . | int) | uniq -}}
{{- end -}}
{{- $ports | toJson -}}
{{- end -}}

{{/* The servers that store the same, each for itself, as a JSON object of pairs: each with the first one of its partitions. */}}
{{- define "sluice.mirrors" -}}
{{- $first := dict -}}
{{- $pairs := list -}}
{{- range .Values.clickhouse.replicated | ternary list .Values.clickhouse.servers -}}
{{- $partitions := .partitions | default "all" -}}
{{- if hasKey $first $partitions -}}
{{- $pairs = append $pairs (list (get $first $partitions) .name) -}}
{{- else -}}
{{- $_ := set $first $partitions .name -}}
{{- end -}}
{{- end -}}
{{- dict "pairs" $pairs | toJson -}}
{{- end -}}

{{/* The first server of each range of partitions, as JSON. */}}
{{- define "sluice.ranges" -}}
{{- $known := dict -}}
{{- $servers := list -}}
{{- range .Values.clickhouse.servers -}}
{{- $partitions := .partitions | default "all" -}}
{{- if not (hasKey $known $partitions) -}}
{{- $_ := set $known $partitions .name -}}
{{- $servers = append $servers .name -}}
{{- end -}}
{{- end -}}
{{- dict "servers" $servers | toJson -}}
{{- end -}}

{{/* The name of a Job; Kubernetes lets that of a CronJob have 52 characters. Takes (dict "root" $ "service" NAME). */}}
{{- define "sluice.jobName" -}}
{{ include "sluice.fullname" .root | trunc (sub 51 (len .service) | int) | trimSuffix "-" }}-{{ .service }}
{{- end -}}

{{/* The port of an http:// or https:// address. */}}
{{- define "sluice.portOf" -}}
{{- $url := urlParse . -}}
{{- regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (eq $url.scheme "https" | ternary 443 80) | int -}}
{{- end -}}

{{/* The paths of a service that an Ingress or HTTPRoute passes on, as JSON. */}}
{{- define "sluice.paths" -}}
{{- if eq .service "ingest-api" -}}
["/v1", "/beacon", "/sourceConfig", "/batch", "/capture", "/e", "/i", "/flags", "/decide", "/array", "/static", "/s", "/api", "/projects", "/m", "/rsaMetrics", "/docs", "/openapi.json"]
{{- else if eq .service "trench-api" -}}
["/events", "/queries", "/webhooks", "/workspaces", "/docs", "/openapi.json"]
{{- else -}}
["/events", "/overview", "/users", "/identities", "/organizations", "/segments", "/names", "/properties", "/search", "/queries", "/views", "/dashboards", "/webhooks", "/alerts", "/digests", "/keys", "/dead-letters", "/example-data", "/pipeline", "/audits", "/console", "/docs", "/openapi.json"]
{{- end -}}
{{- end -}}
