{{/*
The account that creates and alters tables, as JSON. A restore has one of its own.
*/}}
{{- define "sluice.migrateAccount" -}}
{{- $restore := .root.Values.jobs.restore -}}
{{- if and (eq (.job | default "") "restore") $restore.user -}}
{{- $restore | toJson -}}
{{- else -}}
{{- .root.Values.clickhouse.migrate | toJson -}}
{{- end -}}
{{- end -}}

{{/*
The files that a service reads, as a JSON object of lists under "files": the variable that names the file, the file's path
below /etc/sluice, and the secret with its key, or the ConfigMap. A Job reads those of a writer, and "job" is its name.
*/}}
{{- define "sluice.files" -}}
{{- $values := .root.Values -}}
{{- $files := list -}}
{{- $job := .job | default "" -}}
{{- $migrate := include "sluice.migrateAccount" . | fromJson -}}
{{- $isOfClickHouse := has .service (list "writer" "query-api") -}}
{{- if has .service (list "ingest-api" "query-api") -}}
{{- $files = append $files (list "API_KEYS_FILE" "api-keys.json" $values.keys.secret $values.keys.key) -}}
{{- end -}}
{{- if has .service (list "ingest-api" "writer") -}}
{{- with $values.kafka -}}
{{- $files = append $files (list "KAFKA_SSL_CA_FILE" "kafka/ca.crt" .tls.caSecret.name .tls.caSecret.key) -}}
{{- $files = append $files (list "KAFKA_SSL_CERT_FILE" "kafka/tls.crt" .tls.certificateSecret "tls.crt") -}}
{{- $files = append $files (list "KAFKA_SSL_KEY_FILE" "kafka/tls.key" .tls.certificateSecret "tls.key") -}}
{{- $files = append $files (list "KAFKA_SASL_PASSWORD_FILE" "kafka/password" .sasl.passwordSecret.name .sasl.passwordSecret.key) -}}
{{- end -}}
{{- end -}}
{{- if $isOfClickHouse -}}
{{- with $values.clickhouse -}}
{{- $account := eq $.service "writer" | ternary .writer .query -}}
{{- $files = append $files (list "CLICKHOUSE_CA_FILE" "clickhouse/ca.crt" .caSecret.name .caSecret.key) -}}
{{- $files = append $files (list "CLICKHOUSE_CERT_FILE" "clickhouse/tls.crt" $account.certificateSecret "tls.crt") -}}
{{- $files = append $files (list "CLICKHOUSE_KEY_FILE" "clickhouse/tls.key" $account.certificateSecret "tls.key") -}}
{{- $files = append $files (list "CLICKHOUSE_PASSWORD_FILE" "clickhouse/password" $account.passwordSecret.name $account.passwordSecret.key) -}}
{{- if and (eq $.service "writer") $migrate.user -}}
{{- $files = append $files (list "CLICKHOUSE_MIGRATE_PASSWORD_FILE" "clickhouse/migrate-password" $migrate.passwordSecret.name $migrate.passwordSecret.key) -}}
{{- end -}}
{{- if and (eq $.service "query-api") .webhooks.user -}}
{{- $files = append $files (list "CLICKHOUSE_WEBHOOKS_PASSWORD_FILE" "clickhouse/webhooks-password" .webhooks.passwordSecret.name .webhooks.passwordSecret.key) -}}
{{- end -}}
{{- if and (eq $.service "query-api") .sql.user -}}
{{- $files = append $files (list "CLICKHOUSE_SQL_PASSWORD_FILE" "clickhouse/sql-password" .sql.passwordSecret.name .sql.passwordSecret.key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if has $job (list "backup" "restore") -}}
{{- with $values.jobs.s3.secretKey -}}
{{- $files = append $files (list "BACKUP_S3_SECRET_ACCESS_KEY_FILE" "backup/secret-key" .name .key) -}}
{{- end -}}
{{- end -}}
{{- $used := list -}}
{{- range $files -}}
{{- if index . 2 -}}
{{- $used = append $used (dict "variable" (index . 0) "path" (index . 1) "secret" (index . 2) "key" (index . 3)) -}}
{{- end -}}
{{- end -}}
{{- if and $isOfClickHouse $values.clickhouse.servers -}}
{{- $name := include "sluice.serversName" . -}}
{{- $used = append $used (dict "variable" "CLICKHOUSE_SERVERS_FILE" "path" "clickhouse/servers.json" "configMap" $name "key" "servers.json") -}}
{{- end -}}
{{- dict "files" $used | toJson -}}
{{- end -}}

{{/* The ConfigMap with the file of servers. Migrations before an upgrade have one of their own: the other one is of before. */}}
{{- define "sluice.serversName" -}}
{{ include "sluice.fullname" .root }}-{{ eq (.job | default "") "migrations" | ternary "migrations-" "" }}servers
{{- end -}}

{{- define "sluice.serversFile" -}}
{{- dict "servers" .Values.clickhouse.servers | toPrettyJson }}
{{- end -}}

{{/* The volume of these files. It is mounted as a whole: a file of a changed secret is replaced, which it is not with subPath. */}}
{{- define "sluice.secretsVolume" -}}
- name: secrets
  projected:
    defaultMode: 288 # 0440: the group is fsGroup
    sources:
      {{- range (include "sluice.files" . | fromJson).files }}
      - {{ hasKey . "secret" | ternary "secret" "configMap" }}:
          name: {{ .secret | default .configMap }}
          items:
            - { key: {{ .key | quote }}, path: {{ .path }} }
      {{- end }}
{{- end -}}

{{/* The environment of a service's container. */}}
{{- define "sluice.environment" -}}
{{- $values := .root.Values -}}
{{- $section := get $values (get (include "sluice.services" .root | fromJson) .service) -}}
{{- $env := dict "SHUTDOWN_TIMEOUT_MS" (int64 $section.shutdownTimeoutMs) -}}
{{- $migrate := include "sluice.migrateAccount" . | fromJson -}}
{{- if has .service (list "ingest-api" "writer") -}}
{{- with $values.kafka -}}
{{- $_ := set $env "KAFKA_BROKERS" (join "," .brokers) -}}
{{- $_ := set $env "KAFKA_TOPIC_PREFIX" .topicPrefix -}}
{{- $_ := set $env "KAFKA_PARTITIONS" (int64 .partitions) -}}
{{- if .replicationFactor -}}
{{- $_ := set $env "KAFKA_REPLICATION_FACTOR" (int64 .replicationFactor) -}}
{{- end -}}
{{- $_ := set $env "KAFKA_SSL" .tls.enabled -}}
{{- if .sasl.mechanism -}}
{{- $_ := set $env "KAFKA_SASL_MECHANISM" .sasl.mechanism -}}
{{- with .sasl.username -}}
{{- $_ := set $env "KAFKA_SASL_USERNAME" . -}}
{{- end -}}
{{- range $variable, $value := dict "KAFKA_SASL_TOKEN_URL" .sasl.tokenUrl "KAFKA_SASL_SCOPE" .sasl.scope "KAFKA_SASL_EXTENSIONS" .sasl.extensions "AWS_REGION" .sasl.awsRegion -}}
{{- if $value -}}
{{- $_ := set $env $variable $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if has .service (list "writer" "query-api") -}}
{{- with $values.clickhouse -}}
{{- if not .servers -}}
{{- $_ := set $env "CLICKHOUSE_URL" .url -}}
{{- end -}}
{{- $_ := set $env "CLICKHOUSE_DATABASE" .database -}}
{{- $_ := set $env "CLICKHOUSE_USER" (eq $.service "writer" | ternary .writer.user .query.user) -}}
{{- if and (eq $.service "writer") $migrate.user -}}
{{- $_ := set $env "CLICKHOUSE_MIGRATE_USER" $migrate.user -}}
{{- end -}}
{{- if and (eq $.service "query-api") .webhooks.user -}}
{{- $_ := set $env "CLICKHOUSE_WEBHOOKS_USER" .webhooks.user -}}
{{- end -}}
{{- if and (eq $.service "query-api") .sql.user -}}
{{- $_ := set $env "CLICKHOUSE_SQL_USER" .sql.user -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq .service "query-api" -}}
{{- $urls := list -}}
{{- range $name, $deployment := include "sluice.deployments" .root | fromJson -}}
{{- if eq $deployment.service "writer" -}}
{{- $urls = append $urls (printf "http://%s-%s:8080" (include "sluice.fullname" $.root) $name) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $env "WRITER_URL" (join "," $urls) -}}
{{- if not $values.clickhouse.servers -}}
{{- $_ := set $env "REPLAY_URL" (join "," $urls) -}}
{{- end -}}
{{- end -}}
{{- if eq .service "trench-api" -}}
{{- $fullname := include "sluice.fullname" .root -}}
{{- $_ := set $env "INGEST_URL" (printf "http://%s-ingest-api:8080" $fullname) -}}
{{- $_ := set $env "QUERY_URL" (printf "http://%s-query-api:8080" $fullname) -}}
{{- end -}}
{{- if and (has (.job | default "") (list "backup" "restore")) $values.jobs.s3.accessKeyId -}}
{{- $_ := set $env "BACKUP_S3_ACCESS_KEY_ID" $values.jobs.s3.accessKeyId -}}
{{- end -}}
{{- if and (has .service (list "writer" "query-api")) $values.clickhouse.replicated -}}
{{- $_ := set $env "CLICKHOUSE_REPLICATION" "replicated" -}}
{{- end -}}
{{- if and (has .service (list "writer" "query-api")) $values.clickhouse.shared -}}
{{- $_ := set $env "CLICKHOUSE_REPLICATION" "shared" -}}
{{- end -}}
{{- with .server -}}
{{- $_ := set $env "CLICKHOUSE_SERVER" . -}}
{{- end -}}
{{- with $values.tracing -}}
{{- if .enabled -}}
{{- $_ := set $env "NODE_OPTIONS" "--import=/sluice/packages/shared/src/tracing/register.mjs" -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_ENDPOINT" .endpoint -}}
{{- $_ := set $env "OTEL_TRACES_SAMPLER" "parentbased_traceidratio" -}}
{{- $_ := set $env "OTEL_TRACES_SAMPLER_ARG" (toString .samplingRatio) -}}
{{- end -}}
{{- end -}}
{{- range (include "sluice.files" . | fromJson).files -}}
{{- $_ := set $env .variable (printf "/etc/sluice/%s" .path) -}}
{{- end -}}
{{- range $name, $value := merge $env $section.env }}
- name: {{ $name }}
  value: {{ kindIs "float64" $value | ternary (int64 $value) $value | toString | quote }}
{{- end }}
{{- with $section.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
