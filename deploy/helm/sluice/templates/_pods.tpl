{{- define "sluice.podSecurityContext" -}}
runAsNonRoot: true
{{- range $name, $id := .Values.podSecurityContext }}
{{- if not (kindIs "invalid" $id) }}
{{ $name }}: {{ int64 $id }}
{{- end }}
{{- end }}
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "sluice.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* How long a pod may take to stop, from the section of a service: longer than its sleep and its drain together. */}}
{{- define "sluice.gracePeriodSeconds" -}}
{{- $drainSeconds := divf .shutdownTimeoutMs 1000 | ceil | int64 -}}
{{- add .preStopSleepSeconds $drainSeconds 5 -}}
{{- end -}}
