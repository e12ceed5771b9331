{{/* Ends with all contradictions of the values at once; values.schema.json finds wrong names and types before that. */}}
{{- define "sluice.check" -}}
{{- $values := .Values -}}
{{- $errors := list -}}
{{- if not $values.image.repository -}}
{{- $errors = append $errors "image.repository: say where your images are, for example registry.example.com/sluice" -}}
{{- end -}}
{{- if not $values.keys.secret -}}
{{- $errors = append $errors "keys.secret: name the secret with the keys file" -}}
{{- end -}}
{{- with $values.kafka -}}
{{- if not .brokers -}}
{{- $errors = append $errors "kafka.brokers: name at least one broker, as host:port" -}}
{{- end -}}
{{- if and (not .tls.enabled) (or .tls.caSecret.name .tls.certificateSecret) -}}
{{- $errors = append $errors "kafka.tls: certificates need enabled: true" -}}
{{- end -}}
{{- if eq .sasl.mechanism "aws-msk-iam" -}}
{{- if or .sasl.username .sasl.passwordSecret.name (not .sasl.awsRegion) (not .tls.enabled) -}}
{{- $errors = append $errors "kafka.sasl: aws-msk-iam needs awsRegion and tls.enabled, and has no username and passwordSecret" -}}
{{- end -}}
{{- else if and .sasl.mechanism (not (and .sasl.username .sasl.passwordSecret.name)) -}}
{{- $errors = append $errors "kafka.sasl: a mechanism needs username and passwordSecret.name" -}}
{{- else if and (eq .sasl.mechanism "oauthbearer") (not .sasl.tokenUrl) -}}
{{- $errors = append $errors "kafka.sasl: oauthbearer needs tokenUrl" -}}
{{- else if and (not .sasl.mechanism) (or .sasl.username .sasl.passwordSecret.name) -}}
{{- $errors = append $errors "kafka.sasl: username and passwordSecret need a mechanism" -}}
{{- end -}}
{{- if and (ne .sasl.mechanism "oauthbearer") (or .sasl.tokenUrl .sasl.scope .sasl.extensions) -}}
{{- $errors = append $errors "kafka.sasl: tokenUrl, scope and extensions need the mechanism oauthbearer" -}}
{{- end -}}
{{- end -}}
{{- with $values.clickhouse -}}
{{- if and .url .servers -}}
{{- $errors = append $errors "clickhouse.url: clickhouse.servers has the addresses; remove one of them" -}}
{{- else if not (or .url .servers) -}}
{{- $errors = append $errors "clickhouse.url: give the address of ClickHouse's HTTP interface" -}}
{{- end -}}
{{- range include "sluice.clickHouseUrls" $ | fromJsonArray -}}
{{- if and (hasPrefix "http://" .) (or $values.clickhouse.caSecret.name $values.clickhouse.writer.certificateSecret $values.clickhouse.query.certificateSecret) -}}
{{- $errors = append $errors "clickhouse.url: certificates need https" -}}
{{- end -}}
{{- end -}}
{{- if and .replicated (not .servers) -}}
{{- $errors = append $errors "clickhouse.replicated: clickhouse.servers has to name the replicas, each with an address of its own" -}}
{{- end -}}
{{- if and .shared (or .servers .replicated) -}}
{{- $errors = append $errors "clickhouse.shared: clickhouse.url leads to all replicas; remove clickhouse.servers and clickhouse.replicated" -}}
{{- end -}}
{{- if and .shared .sql.user -}}
{{- $errors = append $errors "clickhouse.sql: there is no SQL where replicas share the rows of tables; remove user" -}}
{{- end -}}
{{- $fullname := include "sluice.fullname" $ -}}
{{- range $index, $server := .servers -}}
{{- if and $.Values.clickhouse.replicated (or $server.group $server.database) -}}
{{- $errors = append $errors (printf "clickhouse.servers: %s is a replica, and has no group and database of its own" $server.name) -}}
{{- end -}}
{{- if gt (len (printf "%s-writer-%s" $fullname .name)) 63 -}}
{{- $errors = append $errors (printf "clickhouse.servers: %s-writer-%s is too long for a name in Kubernetes" $fullname .name) -}}
{{- end -}}
{{- range slice $values.clickhouse.servers 0 $index -}}
{{- if eq .name $server.name -}}
{{- $errors = append $errors (printf "clickhouse.servers: %s is there twice" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name := list "writer" "query" -}}
{{- $account := get $values.clickhouse $name -}}
{{- if and $account.passwordSecret.name $account.certificateSecret -}}
{{- $errors = append $errors (printf "clickhouse.%s: give passwordSecret or certificateSecret, not both" $name) -}}
{{- end -}}
{{- end -}}
{{- if and .writer.certificateSecret .migrate.passwordSecret.name -}}
{{- $errors = append $errors "clickhouse.migrate: the certificate of the writer logs in this account as well; remove passwordSecret" -}}
{{- end -}}
{{- if and (not .migrate.user) .migrate.passwordSecret.name -}}
{{- $errors = append $errors "clickhouse.migrate: passwordSecret needs a user" -}}
{{- end -}}
{{- if and (not .webhooks.user) .webhooks.passwordSecret.name -}}
{{- $errors = append $errors "clickhouse.webhooks: passwordSecret needs a user" -}}
{{- end -}}
{{- if and (not .sql.user) .sql.passwordSecret.name -}}
{{- $errors = append $errors "clickhouse.sql: passwordSecret needs a user" -}}
{{- end -}}
{{- end -}}
{{- with $values.writer -}}
{{- $most := int64 $values.kafka.partitions -}}
{{- if and .keda.enabled (gt (int64 .keda.maxReplicas) $most) -}}
{{- $errors = append $errors (printf "writer.keda.maxReplicas: at most kafka.partitions (%d); further writers would have nothing to do" $most) -}}
{{- end -}}
{{- if and (not .keda.enabled) (gt (int64 .replicas) $most) -}}
{{- $errors = append $errors (printf "writer.replicas: at most kafka.partitions (%d); further writers would have nothing to do" $most) -}}
{{- end -}}
{{- if and .keda.enabled (gt (int64 .keda.minReplicas) (int64 .keda.maxReplicas)) -}}
{{- $errors = append $errors "writer.keda.minReplicas: at most maxReplicas" -}}
{{- end -}}
{{- if and .keda.enabled (not .keda.prometheusAddress) -}}
{{- $errors = append $errors "writer.keda.prometheusAddress: give the address of Prometheus" -}}
{{- end -}}
{{- end -}}
{{- range $name := list "ingestApi" "queryApi" "trenchApi" -}}
{{- with get $values $name -}}
{{- if and .autoscaling.enabled (gt (int64 .autoscaling.minReplicas) (int64 .autoscaling.maxReplicas)) -}}
{{- $errors = append $errors (printf "%s.autoscaling.minReplicas: at most maxReplicas" $name) -}}
{{- end -}}
{{- if and .ingress.enabled (not .ingress.host) -}}
{{- $errors = append $errors (printf "%s.ingress.host: give the name under which it is reached" $name) -}}
{{- end -}}
{{- if and .httpRoute.enabled (not .httpRoute.parentRefs) -}}
{{- $errors = append $errors (printf "%s.httpRoute.parentRefs: name a Gateway" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $values.tracing.enabled (not $values.tracing.endpoint) -}}
{{- $errors = append $errors "tracing.endpoint: give the address of a collector" -}}
{{- end -}}
{{- range $name := list "ingestApi" "writer" "queryApi" "trenchApi" -}}
{{- range (get $values $name).extraEnv -}}
{{- if and $values.tracing.enabled (has .name (list "NODE_OPTIONS" "OTEL_EXPORTER_OTLP_ENDPOINT" "OTEL_TRACES_SAMPLER" "OTEL_TRACES_SAMPLER_ARG")) -}}
{{- $errors = append $errors (printf "%s.extraEnv: tracing sets %s" $name .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $servers := list -}}
{{- $hasRanges := false -}}
{{- range $values.clickhouse.servers -}}
{{- $servers = append $servers .name -}}
{{- $hasRanges = or $hasRanges (hasKey . "partitions") -}}
{{- end -}}
{{- with $values.clickhouse -}}
{{- if and $hasRanges .sql.user -}}
{{- $errors = append $errors "clickhouse.sql: there is no SQL where clickhouse.servers have ranges of partitions; remove user" -}}
{{- end -}}
{{- if and $hasRanges .query.certificateSecret -}}
{{- $errors = append $errors "clickhouse.query: an account with a certificate cannot read clickhouse.servers with ranges of partitions" -}}
{{- end -}}
{{- if and .webhooks.user (gt (len $servers) 1) (not $values.queryApi.env.CLICKHOUSE_WEBHOOKS_URL) -}}
{{- $errors = append $errors "clickhouse.webhooks: of several servers, say which one keeps them: queryApi.env.CLICKHOUSE_WEBHOOKS_URL" -}}
{{- end -}}
{{- end -}}
{{- $alerts := list -}}
{{- range ($.Files.Get "files/sluice.rules.yml" | fromYaml).groups -}}
{{- range .rules -}}
{{- $alerts = append $alerts .alert -}}
{{- end -}}
{{- end -}}
{{- range $values.metrics.prometheusRule.leaveOut -}}
{{- if not (has . $alerts) -}}
{{- $errors = append $errors (printf "metrics.prometheusRule.leaveOut: there is no alert %s" .) -}}
{{- end -}}
{{- end -}}
{{- with $values.jobs -}}
{{- if and .server (not (has .server $servers)) -}}
{{- $errors = append $errors (printf "jobs.server: clickhouse.servers has no %s" .server) -}}
{{- end -}}
{{- if ne (empty .s3.accessKeyId) (empty .s3.secretKey.name) -}}
{{- $errors = append $errors "jobs.s3: give accessKeyId and secretKey.name, or neither" -}}
{{- end -}}
{{- if and .backup.schedule (not .backup.to) -}}
{{- $errors = append $errors "jobs.backup.to: say where backups go, for example s3://my-bucket/sluice" -}}
{{- end -}}
{{- if and .restore.from (not $values.writer.stopped) -}}
{{- $errors = append $errors "jobs.restore: writers must not run; set writer.stopped" -}}
{{- end -}}
{{- if $values.clickhouse.shared -}}
{{- $instead := "Use the backups of ClickHouse Cloud: docs/operate/existing-cluster.md#clickhouse-cloud." -}}
{{- range $name, $isThere := dict "jobs.backup.schedule" .backup.schedule "jobs.restore.from" .restore.from -}}
{{- if $isThere -}}
{{- $errors = append $errors (printf "%s: it cannot be used where replicas share the rows of tables. %s" $name $instead) -}}
{{- end -}}
{{- end -}}
{{- if .growPartitions.to -}}
{{- $errors = append $errors "jobs.growPartitions.to: it cannot be used where replicas share the rows of tables. Choose kafka.partitions for good." -}}
{{- end -}}
{{- end -}}
{{- if and .restore.confirmed (not .restore.from) -}}
{{- $errors = append $errors "jobs.restore.confirmed: remove it, or name the backup (from)" -}}
{{- end -}}
{{- if and (not .restore.user) .restore.passwordSecret.name -}}
{{- $errors = append $errors "jobs.restore: passwordSecret needs a user" -}}
{{- end -}}
{{- if and $values.clickhouse.writer.certificateSecret .restore.passwordSecret.name -}}
{{- $errors = append $errors "jobs.restore: the certificate of the writer logs in this account as well; remove passwordSecret" -}}
{{- end -}}
{{- with .growPartitions.to -}}
{{- if not (and $values.ingestApi.stopped $values.writer.stopped) -}}
{{- $errors = append $errors "jobs.growPartitions: neither ingest-api nor writers may run; set ingestApi.stopped and writer.stopped" -}}
{{- end -}}
{{- if le (int64 .) (int64 $values.kafka.partitions) -}}
{{- $errors = append $errors (printf "jobs.growPartitions.to: more than kafka.partitions (%d); remove it once they are grown" (int64 $values.kafka.partitions)) -}}
{{- end -}}
{{- if $hasRanges -}}
{{- $errors = append $errors "jobs.growPartitions: it cannot be done where clickhouse.servers have ranges of partitions" -}}
{{- end -}}
{{- end -}}
{{- if and .restore.from .growPartitions.to -}}
{{- $errors = append $errors "jobs: restore and growPartitions are done one after the other" -}}
{{- end -}}
{{- end -}}
{{- if $errors -}}
{{- printf "\n\ninvalid values:\n  %s\n" (join "\n  " $errors) | fail -}}
{{- end -}}
{{- end -}}
