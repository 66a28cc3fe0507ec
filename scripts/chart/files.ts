import { join } from "node:path";
import { Document, isMap, isScalar, parse, type Scalar, stringify } from "yaml";
import { z } from "zod";
import { ACCESS_NAMESPACE } from "../../src/api/access.ts";
import { INSTALLED_LABELS, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../src/api/keys.ts";
import { HOST_CONFIG_NAME, HOST_NAME_KEY } from "../../src/clusters/host-name.ts";
import { componentOf, hostsOf, repositoryOf, sizesOf, templateDeployment } from "./deployment.ts";
import { documentsOf, escapeTemplate, type ObjectDocument, TemplateText, when } from "./template.ts";
import { COMPONENTS, defaultValues, jsonSchema, type Sizes, valueRows } from "./values.ts";

const HEADER = "Generated from manifests/ and examples/ by `npm run generate`: change those, not this file.";
const CERTIFICATES = "examples/webhook-certificate";
const MANAGED_BY = ["metadata", "labels", MANAGED_BY_LABEL];
const KEEP = ["metadata", "annotations", "helm.sh/resource-policy"];

const component = z.enum(COMPONENTS);
const kustomization = z.object({ resources: z.array(z.string()) });

/** Returns the files of charts/legation by their path in the repository. `read` reads one of the repository's files. */
export function chartFiles(read: (path: string) => string): Readonly<Record<string, string>> {
  const files: Record<string, string> = {
    "Chart.yaml": chartYaml(read),
    "values.yaml": valuesYaml(chartDefaults(read)),
    "values.schema.json": `${JSON.stringify(jsonSchema(), null, 2)}\n`,
    "templates/_image.tpl": IMAGE,
    "templates/NOTES.txt": NOTES,
    "templates/host.yaml": hostConfig(),
    "templates/webhook-certificate.yaml": certificates(read),
    "templates/hub.yaml": hub(read),
    "templates/monitoring.yaml": monitoring(read),
    "templates/network-policies.yaml": networkPolicies(read),
  };
  for (const path of listed(read, "manifests")) files[templatePath(path, "manifests")] = template(read, path);
  for (const part of ["access", "ui"]) {
    for (const path of listed(read, `manifests/${part}`)) {
      files[templatePath(path, "manifests")] = when(`.Values.${part}.enabled`, template(read, path));
    }
  }
  return Object.fromEntries(
    Object.entries(files).map(([file, text]) => [join("charts/legation", file), headed(file, text)]),
  );
}

function headed(file: string, text: string): string {
  if (file.endsWith(".json") || file === "templates/NOTES.txt") return text;
  return file.startsWith("templates/") ? `{{- /* ${HEADER} */}}\n${text}` : `# ${HEADER}\n${text}`;
}

function listed(read: (path: string) => string, folder: string): string[] {
  const { resources } = kustomization.parse(parse(read(`${folder}/kustomization.yaml`)));
  return resources.map((file) => `${folder}/${file}`);
}

function templatePath(path: string, folder: string): string {
  return `templates/${path.slice(folder.length + 1).replaceAll("/", "-")}`;
}

/** Returns a manifest file as a template. */
function template(read: (path: string) => string, path: string): string {
  return templates(read(path), (document, text) => {
    const kind = document.get("kind");
    if (kind === "Deployment") {
      const name = component.parse(componentOf(document));
      const patch = name === "webhook" ? read(`${CERTIFICATES}/patch.yaml`) : undefined;
      templateDeployment(document, name, text, patch);
      return undefined;
    }
    if (kind !== "Namespace" && kind !== "CustomResourceDefinition") return undefined;
    // They hold what users wrote, and members' credentials. The page's namespace holds nothing.
    if (!path.startsWith("manifests/ui/")) document.setIn(KEEP, "keep");
    if (kind === "CustomResourceDefinition") return ".Values.crds.install";
    const name = document.getIn(["metadata", "name"]);
    return `ne .Release.Namespace ${JSON.stringify(name)}`;
  });
}

/** Turns each object into a template. `change` puts expressions in, and returns the condition of the object if it has one. */
function templates(
  manifests: string,
  change: (document: ObjectDocument, text: TemplateText) => string | undefined,
): string {
  const text = new TemplateText();
  return documentsOf(manifests)
    .map((document) => {
      const condition = change(document, text);
      // Helm sets this label itself; what only renders the chart, such as Argo CD, takes it from here.
      if (document.hasIn(MANAGED_BY)) text.expression(document, MANAGED_BY, "$.Release.Service");
      const rendered = text.render(document);
      return condition === undefined ? rendered : when(condition, rendered);
    })
    .join("---\n");
}

/** Returns the values of an installation as the manifests describe it. */
export function chartDefaults(read: (path: string) => string): object {
  const files = ["controller.yaml", "webhook.yaml", "access/deployment.yaml", "ui/deployment.yaml"];
  const deployments = files
    .flatMap((file) => documentsOf(read(`manifests/${file}`)))
    .filter((document) => document.get("kind") === "Deployment");
  const running = (name: string): ObjectDocument => {
    const found = deployments.find((document) => componentOf(document) === name);
    if (found === undefined) throw new Error(`manifests: no Deployment runs ${name}`);
    return found;
  };
  const sizes = (name: string): Sizes => sizesOf(running(name));
  const [repository = ""] = deployments.map(repositoryOf);
  return defaultValues(
    { controller: sizes("controller"), webhook: sizes("webhook"), access: sizes("access"), ui: sizes("ui") },
    { repository, hosts: hostsOf(running("ui")) },
  );
}

function valuesYaml(values: object): string {
  const document = new Document(values);
  for (const { path, description } of valueRows(values)) {
    const keys = path.split(".");
    const parent = keys.length === 1 ? document.contents : document.getIn(keys.slice(0, -1));
    const key = keyOf(parent, keys.at(-1));
    if (key !== undefined) key.commentBefore = ` ${description}`;
  }
  return document.toString({ lineWidth: 120 });
}

function keyOf(parent: unknown, name: string | undefined): Scalar | undefined {
  if (!isMap(parent)) return undefined;
  return parent.items.map(({ key }) => key).find((key): key is Scalar => isScalar(key) && key.value === name);
}

function chartYaml(read: (path: string) => string): string {
  const { version, description, license } = z
    .object({ version: z.string(), description: z.string(), license: z.string() })
    .parse(JSON.parse(read("package.json")));
  return stringify({
    apiVersion: "v2",
    name: "legation",
    description,
    type: "application",
    version,
    appVersion: version,
    kubeVersion: ">=1.30.0-0",
    keywords: ["multicluster", "scheduling", "virtual-node"],
    annotations: { "artifacthub.io/license": license },
  });
}

const IMAGE = `{{- define "legation.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}
`;

const NOTES = `Legation {{ .Chart.AppVersion }} is installed as the host "{{ .Values.clusterName }}".

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

Then join members with \`legation join\`, and opt namespaces in:

  kubectl label namespace NAME legation.dev/delegation=annotated

\`helm uninstall\` leaves the custom resources and the members as they are. Delegated pods run on for about five minutes; then
Kubernetes evicts them. New pods, also those that replace evicted ones, run on the host's own nodes. To remove everything,
run \`legation unjoin\` for each member and then \`legation uninstall\`.
`;

function labels(): string {
  const security = ["enforce", "audit", "warn"].map((mode) => `pod-security.kubernetes.io/${mode}=restricted`);
  return [...security, ...Object.entries(INSTALLED_LABELS).map(([key, value]) => `${key}=${value}`)].join(" ");
}

function hostConfig(): string {
  const metadata = { name: HOST_CONFIG_NAME, namespace: SYSTEM_NAMESPACE, labels: INSTALLED_LABELS };
  const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { [HOST_NAME_KEY]: "" } };
  return templates(stringify(manifest), (document, text) => {
    text.expression(document, ["data", HOST_NAME_KEY], ".Values.clusterName | quote");
    return undefined;
  });
}

/** The last object is the webhook's certificate; the others make an authority for it. */
function certificates(read: (path: string) => string): string {
  const own = "not .Values.webhook.certificate.issuerRef.name";
  const text = templates(read(`${CERTIFICATES}/certificate.yaml`), (document, lines) => {
    if (document.getIn(["spec", "dnsNames"]) === undefined) return own;
    const issuer = document.toJS().spec.issuerRef;
    lines.lines(document, ["spec", "issuerRef"], (indent) => [
      `${indent}issuerRef:`,
      `${indent}  {{- if .Values.webhook.certificate.issuerRef.name }}`,
      `${indent}  {{- toYaml .Values.webhook.certificate.issuerRef | nindent ${indent.length + 2} }}`,
      `${indent}  {{- else }}`,
      ...Object.entries(issuer).map(([key, value]) => `${indent}  ${key}: ${value}`),
      `${indent}  {{- end }}`,
    ]);
    return undefined;
  });
  return when('eq .Values.webhook.certificate.source "cert-manager"', text);
}

function hub(read: (path: string) => string): string {
  const text = templates(read("manifests/hub/service.yaml"), (document, lines) => {
    lines.block(document, ["metadata", "annotations"], ".Values.hub.annotations", { optional: true });
    lines.expression(document, ["spec", "type"], ".Values.hub.type");
    return undefined;
  });
  return when(".Values.hub.enabled", text);
}

function monitoring(read: (path: string) => string): string {
  return templates(read("examples/monitoring/prometheus-operator.yaml"), (document, lines) => {
    lines.block(document, ["metadata", "labels"], ".Values.monitoring.labels", { optional: true });
    if (document.get("kind") === "PrometheusRule") return ".Values.monitoring.rules";
    const inAccess = document.getIn(["metadata", "namespace"]) === ACCESS_NAMESPACE;
    const wanted = ".Values.monitoring.podMonitors";
    return inAccess ? `and ${wanted} .Values.access.enabled` : wanted;
  });
}

function networkPolicies(read: (path: string) => string): string {
  const text = ["system", "access"].map((name) => {
    const policies = escapeTemplate(read(`manifests/network-policies/${name}.yaml`));
    return name === "access" ? when(".Values.access.enabled", policies) : policies;
  });
  return when(".Values.networkPolicy.enabled", text.join("---\n"));
}
