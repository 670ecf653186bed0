{{/* "true" if Muster works in the namespace of the release only; else empty. */}}
{{- define "muster.own" -}}
{{- if eq .Values.namespaces "Own" -}}true{{- end -}}
{{- end -}}

{{/* "true" if a function is installed; else empty. Arguments: the root, the function. */}}
{{- define "muster.enabled" -}}
{{- $root := index . 0 -}}
{{- $function := index . 1 -}}
{{- $elsewhere := and (include "muster.own" $root) (eq $function "mark-runtime") -}}
{{- if eq $function "dead-letter" -}}
{{- if not $root.Values.delivery.deadLetterSink -}}true{{- end -}}
{{- else if and (get $root.Values.steps $function).enabled (not $elsewhere) -}}true
{{- end -}}
{{- end -}}

{{/* The image: by its digest, else by a tag. */}}
{{- define "muster.image" -}}
{{- $image := .Values.image -}}
{{- if or $image.tag (not $image.digest) -}}
{{- printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) -}}
{{- else -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- end -}}
{{- end -}}

{{/* What follows the cluster-scoped names of an installation that is not the cluster's only one. */}}
{{- define "muster.suffix" -}}
{{- if include "muster.own" . -}}-{{ .Release.Namespace }}{{- end -}}
{{- end -}}

{{/* The namespace in a reference to an object of the release; none is needed if all is in one namespace. */}}
{{- define "muster.refNamespace" -}}
{{- if not (include "muster.own" .) -}}, namespace: {{ .Release.Namespace | quote }}{{- end -}}
{{- end -}}

{{/* The kind of the roles. */}}
{{- define "muster.role" -}}
{{- if include "muster.own" . -}}Role{{- else -}}ClusterRole{{- end -}}
{{- end -}}

{{/* The namespace of a role, as a line of its metadata. */}}
{{- define "muster.roleNamespace" -}}
{{- if include "muster.own" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}
{{- end -}}

{{/* The namespaces that a source watches, as a field of its spec. */}}
{{- define "muster.namespaceSelector" -}}
{{- if eq .Values.namespaces "All" -}}
namespaceSelector: {}
{{- else if eq .Values.namespaces "Labelled" -}}
namespaceSelector:
  matchLabels: {muster.dev/gang-jobs: enabled}
{{- end -}}
{{- end -}}

{{/* The namespaces for which the binding of an admission policy holds, as a field of its spec. */}}
{{- define "muster.matchResources" -}}
{{- if include "muster.own" . }}
  matchResources:
    namespaceSelector:
      matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace | quote }}}
{{- end -}}
{{- end -}}

{{/* The pods that the NetworkPolicy closes: all of Muster's own namespace, else those of the functions alone. */}}
{{- define "muster.pods" -}}
{{- if include "muster.own" . -}}
{matchExpressions: [{key: serving.knative.dev/service, operator: In, values: [create-pod-groups, create-workload, dead-letter, emit-conditions, muster, patch-pods, resize-gang]}]}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* The version of scheduling.k8s.io that the sources watch. */}}
{{- define "muster.groupVersion" -}}
{{- if eq .Values.kubernetes "1.36" -}}v1alpha2{{- else -}}v1beta1{{- end -}}
{{- end -}}

{{/* The service account of a step. Arguments: the root, the step. */}}
{{- define "muster.account" -}}
{{- if (index . 0).Values.oneService -}}muster{{- else -}}{{ index . 1 }}{{- end -}}
{{- end -}}

{{/* The functions of the shared Service, as its container's arguments. */}}
{{- define "muster.functions" -}}
{{- $functions := list -}}
{{- range list "create-workload" "create-pod-groups" "patch-pods" "resize-gang" "emit-conditions" "mark-runtime" "dead-letter" -}}
{{- if include "muster.enabled" (list $ .) -}}
{{- $functions = append $functions . -}}
{{- end -}}
{{- end -}}
{{- join ", " $functions -}}
{{- end -}}

{{/* Where the events of a step go: a Service of its own, or a path of the shared one. Arguments: the root, the step. */}}
{{- define "muster.subscriber" -}}
{{- $shared := (index . 0).Values.oneService -}}
ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: {{ ternary "muster" (index . 1) $shared }}}
{{- if $shared }}
uri: /{{ index . 1 }}
{{- end -}}
{{- end -}}

{{/* Where dead letters go. Arguments: the root, the step; no step for the broker, whose reference has a namespace. */}}
{{- define "muster.sink" -}}
{{- $root := index . 0 -}}
{{- $service := ternary "muster" "dead-letter" $root.Values.oneService -}}
{{- $namespace := ternary "" (include "muster.refNamespace" $root) (ne (index . 1) "") -}}
{{- if $root.Values.delivery.deadLetterSink -}}
{{- toYaml $root.Values.delivery.deadLetterSink -}}
{{- else -}}
ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: {{ $service }}{{ $namespace }}}
{{- if $root.Values.oneService }}
uri: /dead-letter
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Retries and waits. Arguments: the root, the step; no step for the broker. */}}
{{- define "muster.delivery" -}}
{{- $step := get (index . 0).Values.steps (index . 1) | default dict -}}
{{- $all := omit (index . 0).Values.delivery "deadLetterSink" -}}
{{- toYaml (mergeOverwrite (deepCopy $all) ($step.delivery | default dict)) -}}
{{- end -}}

{{/* Requests and limits. Arguments: the root, the step; no step for the shared Service. */}}
{{- define "muster.resources" -}}
{{- $root := index . 0 -}}
{{- $step := get $root.Values.steps (index . 1) | default dict -}}
{{- $usual := $root.Values.resources -}}
{{- if not (index . 1) -}}{{- $usual = $root.Values.sharedResources | default $usual -}}{{- end -}}
{{- toYaml (mergeOverwrite (deepCopy $usual) ($step.resources | default dict)) -}}
{{- end -}}

{{/* Settings. Arguments: the root, the function; no function for the shared Service. */}}
{{- define "muster.env" -}}
{{- $root := index . 0 -}}
{{- $step := get $root.Values.steps (index . 1) | default dict -}}
{{- if and (include "muster.own" $root) (ne (index . 1) "dead-letter") }}
- {name: MUSTER_NAMESPACE, value: {{ $root.Release.Namespace | quote }}}
{{- end -}}
{{- range $name, $value := mergeOverwrite (deepCopy $root.Values.env) ($step.env | default dict) }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end -}}
{{- end -}}
