{{/*
Names. There is one Quadrant in a cluster: the webhook configurations, the lease and the Secret are
found by the controller under fixed names, so the others are fixed as well.
*/}}

{{- define "quadrant.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "quadrant.labels" -}}
app.kubernetes.io/name: quadrant
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "quadrant.controller.selector" -}}
app.kubernetes.io/name: quadrant
app.kubernetes.io/component: controller
{{- end -}}

{{- define "quadrant.node.selector" -}}
app.kubernetes.io/name: quadrant
app.kubernetes.io/component: node
{{- end -}}

{{/* The extended resource names that lead to our devices: HAMi's, and that of our class. */}}
{{- define "quadrant.resources" -}}
{{- append (values .Values.controller.settings.resources) .Values.deviceClass.extendedResourceName | compact | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* Where the node plugin and the keeper of MPS daemons meet; a reboot empties it. */}}
{{- define "quadrant.mps.folder" -}}
/run/{{ .Values.driver }}/mps
{{- end -}}

{{/* Whether the node plugin reads NVIDIA's library. */}}
{{- define "quadrant.node.nvml" -}}
{{- and (not .Values.inventory.simulated.profile) (has .Values.inventory.name (list "" "nvml")) -}}
{{- end -}}

{{/*
Whether the node plugin changes real cards (makes parts of them, sets time slices), or reads what NVML
tells nobody else: where on its card a part lies.
*/}}
{{- define "quadrant.node.changes" -}}
{{- and (eq (include "quadrant.node.nvml" .) "true") (or .Values.node.timeSlicing (ne .Values.node.settings.mig "off")) -}}
{{- end -}}
