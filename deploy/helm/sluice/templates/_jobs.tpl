{{/* The addresses of the services that run, by the variable in which "sluice doctor" reads them, as JSON. */}}
{{- define "sluice.serviceUrls" -}}
{{- $urls := dict -}}
{{- range $name, $deployment := include "sluice.deployments" . | fromJson -}}
{{- $variable := get (dict "ingest-api" "INGEST_URL" "query-api" "QUERY_URL" "writer" "WRITER_URL") $deployment.service -}}
{{- $section := get (include "sluice.services" $ | fromJson) $deployment.service -}}
{{- if and $variable (not (index $.Values $section).stopped) -}}
{{- $url := printf "http://%s-%s:8080" (include "sluice.fullname" $) $name -}}
{{- $_ := set $urls $variable (hasKey $urls $variable | ternary (printf "%s,%s" (get $urls $variable) $url) $url) -}}
{{- end -}}
{{- end -}}
{{- $urls | toJson -}}
{{- end -}}

{{/*
The pod of a Job, which runs a command of "sluice" as a writer would. Takes (dict "root" $ "service" NAME "command" LIST), and
perhaps "variables", further ones by their names, and "work", the size of the folder /work that the command may write into.
*/}}
{{- define "sluice.jobPod" -}}
{{- $writer := dict "root" .root "service" "writer" "job" .service -}}
{{- $files := (include "sluice.files" $writer | fromJson).files -}}
metadata:
  labels:
    {{- include "sluice.selectorLabels" . | nindent 4 }}
    {{- with .root.Values.jobs.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .root.Values.jobs.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  restartPolicy: Never
  serviceAccountName: {{ include "sluice.fullname" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- include "sluice.podSecurityContext" .root | nindent 4 }}
  {{- with .root.Values.writer }}
  {{- with .priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  containers:
    - name: {{ .service }}
      image: {{ include "sluice.image" $writer }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      command: {{- toYaml .command | nindent 8 }}
      env:
        {{- include "sluice.environment" $writer | trim | nindent 8 }}
        {{- range $name, $value := .variables }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      resources: {{- toYaml .root.Values.jobs.resources | nindent 8 }}
      securityContext: {{- include "sluice.containerSecurityContext" . | nindent 8 }}
      {{- if or $files .work }}
      volumeMounts:
        {{- if $files }}
        - { name: secrets, mountPath: /etc/sluice, readOnly: true }
        {{- end }}
        {{- if .work }}
        - { name: work, mountPath: /work }
        {{- end }}
      {{- end }}
  {{- if or $files .work }}
  volumes:
    {{- if $files }}
    {{- include "sluice.secretsVolume" $writer | nindent 4 }}
    {{- end }}
    {{- with .work }}
    - name: work
      emptyDir: { sizeLimit: {{ . }} }
    {{- end }}
  {{- end }}
{{- end -}}

{{/* A Job that runs once. Whatever changes its pod is another Job: Kubernetes changes no Job. Takes the same. */}}
{{- define "sluice.job" -}}
{{- $pod := include "sluice.jobPod" . -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "sluice.jobName" . }}-{{ $pod | sha256sum | trunc 8 }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  backoffLimit: 0
  template: {{- $pod | nindent 4 }}
{{- end -}}

{{/* A Job that runs again and again. Takes the same, and "schedule". While writers are stopped for some work, it waits. */}}
{{- define "sluice.cronJob" -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ include "sluice.jobName" . }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  schedule: {{ .schedule | quote }}
  concurrencyPolicy: Forbid
  suspend: {{ .root.Values.writer.stopped }}
  jobTemplate:
    spec:
      backoffLimit: 0
      template: {{- include "sluice.jobPod" . | nindent 8 }}
{{- end -}}

{{/* Where the pod of a Job may connect to. Takes the same; to services with "variables" that name them. */}}
{{- define "sluice.jobPolicy" -}}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "sluice.jobName" . }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "sluice.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  egress:
    - ports:
        - { port: 53, protocol: UDP }
        - { port: 53, protocol: TCP }
    - ports:
        {{- range concat (include "sluice.clickHousePorts" .root | fromJsonArray) (include "sluice.kafkaPorts" .root | fromJsonArray) | uniq }}
        - { port: {{ . }} }
        {{- end }}
        {{- with .root.Values.kafka.sasl.tokenUrl }}
        - { port: {{ include "sluice.portOf" . }} }
        {{- end }}
        {{- if eq .root.Values.kafka.sasl.mechanism "aws-msk-iam" }}
        - { port: 443 }
        {{- end }}
    {{- if .variables }}
    - ports:
        - { port: 8080 }
      to:
        - podSelector:
            matchLabels:
              app.kubernetes.io/name: {{ .root.Chart.Name }}
              app.kubernetes.io/instance: {{ .root.Release.Name }}
    {{- end }}
    {{- if .root.Values.tracing.enabled }}
    - ports:
        - { port: {{ include "sluice.portOf" .root.Values.tracing.endpoint }} }
    {{- end }}
    {{- with .root.Values.networkPolicy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end -}}
