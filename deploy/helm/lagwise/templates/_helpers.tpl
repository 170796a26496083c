{{- define "lagwise.labels" -}}
app.kubernetes.io/name: lagwise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
