import { INSTALLED_LABELS, SYSTEM_NAMESPACE } from "../../src/api/keys.ts";
import type { ChartDefaults } from "./values.ts";

/** Returns the notes that Helm prints after an installation. */
export function notes({ image }: ChartDefaults): string {
  return `Legation {{ .Chart.AppVersion }} is installed as the host "{{ .Values.clusterName }}".
{{- if and (eq .Values.image.repository "${image.repository}") (not .Values.image.digest) }}

No image is published as ${image.repository} yet, so kubelets cannot pull it. Build one in a clone of Legation, and name it:

  docker build -t REGISTRY/legation:TAG . && docker push REGISTRY/legation:TAG
  helm upgrade {{ .Release.Name }} CHART --namespace {{ .Release.Namespace }} --reset-then-reuse-values --set image.repository=REGISTRY/legation --set-string image.tag=TAG
{{- end }}

Wait until its processes are ready:

  kubectl -n ${SYSTEM_NAMESPACE} rollout status deployment
{{- if eq .Release.Namespace "${SYSTEM_NAMESPACE}" }}

This release does not own its namespace. Give it the labels that \`legation install\` gives it:

  kubectl label namespace ${SYSTEM_NAMESPACE} ${labels()} --overwrite
{{- end }}
{{- if .Values.ui.enabled }}

Look at them in a browser at https://localhost:8443, with a token for this cluster, such as of \`kubectl create token\`:

  kubectl -n legation-ui port-forward service/legation-ui 8443:443
{{- end }}

Check the installation:

  helm test {{ .Release.Name }} --namespace {{ .Release.Namespace }} --logs

Then join members with \`legation join\`, and opt namespaces in:

  kubectl label namespace NAME legation.dev/delegation=annotated

\`helm uninstall\` leaves the custom resources and the members as they are. Delegated pods run on for about five minutes; then
Kubernetes evicts them. New pods, also those that replace evicted ones, run on the host's own nodes. To remove everything,
run \`legation unjoin\` for each member and then \`legation uninstall\`.
`;
}

function labels(): string {
  const security = ["enforce", "audit", "warn"].map((mode) => `pod-security.kubernetes.io/${mode}=restricted`);
  return [...security, ...Object.entries(INSTALLED_LABELS).map(([key, value]) => `${key}=${value}`)].join(" ");
}
