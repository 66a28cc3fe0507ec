import { join } from "node:path";
import { Document, isMap, isScalar, parse, type Scalar, stringify } from "yaml";
import { z } from "zod";
import { INSTALLED_LABELS, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../src/api/keys.ts";
import { HOST_CONFIG_NAME, HOST_MCS_KEY, HOST_NAME_KEY, HOST_NETWORK_KEY } from "../../src/clusters/host-name.ts";
import {
  componentOf,
  defaultsOf,
  hostsOf,
  repositoryOf,
  templateDeployment,
  templateMemberRelay,
  templatePod,
} from "./deployment.ts";
import { chartYaml, HELMIGNORE } from "./metadata.ts";
import { notes } from "./notes.ts";
import { chartReadme } from "./readme.ts";
import { documentsOf, type ObjectDocument, TemplateText, when } from "./template.ts";
import { testObjects } from "./test-pod.ts";
import {
  type ChartDefaults,
  COMPONENTS,
  type DeploymentDefaults,
  defaultValues,
  jsonSchema,
  valueRows,
} from "./values.ts";

const HEADER = "Generated from manifests/ and examples/ by `npm run generate`: change those, not this file.";
const CERTIFICATES = "examples/webhook-certificate";
const MANAGED_BY = ["metadata", "labels", MANAGED_BY_LABEL];
const KEEP = ["metadata", "annotations", "helm.sh/resource-policy"];

/** Parts with a namespace of their own, of which each installation decides. */
const PARTS = ["access", "relay"] as const;

const component = z.enum(COMPONENTS);
const kustomization = z.object({ resources: z.array(z.string()) });

/** Returns the files of charts/legation by their path in the repository. `read` reads one of the repository's files. */
export function chartFiles(read: (path: string) => string): Readonly<Record<string, string>> {
  const values = chartDefaults(read);
  const files: Record<string, string> = {
    "Chart.yaml": chartYaml(read, values.image.repository),
    "README.md": chartReadme(read, values, valueRows(values)),
    ".helmignore": HELMIGNORE,
    "values.yaml": valuesYaml(values),
    "values.schema.json": `${JSON.stringify(jsonSchema(), null, 2)}\n`,
    "templates/_helpers.tpl": HELPERS,
    "templates/NOTES.txt": notes(values),
    "templates/host.yaml": hostConfig(),
    "templates/webhook-certificate.yaml": certificates(read),
    "templates/hub.yaml": hub(read),
    "templates/monitoring.yaml": monitoring(read),
    "templates/network-policies.yaml": networkPolicies(read),
    "templates/relay-in-members.yaml": relaysInMembers(read),
    "templates/extra-objects.yaml": EXTRA_OBJECTS,
    "templates/tests/doctor.yaml": templates(testObjects(), (document, text) => {
      if (document.get("kind") === "Pod") templatePod(document, ["spec"], "$.Values.controller", text);
      return undefined;
    }),
  };
  for (const path of listed(read, "manifests")) files[templatePath(path, "manifests")] = template(read, path);
  for (const part of [...PARTS, "mcs", "ui"]) {
    for (const path of listed(read, `manifests/${part}`)) {
      files[templatePath(path, "manifests")] = when(`.Values.${part}.enabled`, template(read, path));
    }
  }
  return Object.fromEntries(
    Object.entries(files).map(([file, text]) => [join("charts/legation", file), headed(file, text)]),
  );
}

function headed(file: string, text: string): string {
  if (file.endsWith(".json") || file.endsWith(".md") || file === "templates/NOTES.txt") return text;
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
    if (kind === "ServiceAccount") {
      const name = component.parse(String(document.getIn(["metadata", "name"])).replace("legation-", ""));
      const annotations = `$.Values.${name}.serviceAccount.annotations`;
      text.block(document, ["metadata", "annotations"], annotations, { optional: true });
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

/**
 * Turns each object into a template. `change` puts expressions in, and returns the condition of the object if it has one. `labels`
 * is the value with its further labels.
 */
function templates(
  manifests: string,
  change: (document: ObjectDocument, text: TemplateText) => string | undefined = () => undefined,
  labels = "$.Values.commonLabels",
): string {
  const text = new TemplateText();
  return documentsOf(manifests)
    .map((document) => {
      const condition = change(document, text);
      text.expression(document, ["metadata", "labels", "helm.sh/chart"], 'include "legation.chart" $');
      text.entries(document, ["metadata", "labels"], labels);
      // Helm sets this label itself; what only renders the chart, such as Argo CD, takes it from here.
      if (document.hasIn(MANAGED_BY)) text.expression(document, MANAGED_BY, "$.Release.Service");
      const rendered = text.render(document);
      return condition === undefined ? rendered : when(condition, rendered);
    })
    .join("---\n");
}

/** Returns the values of an installation as the manifests describe it. */
export function chartDefaults(read: (path: string) => string): ChartDefaults {
  const files = [
    "controller.yaml",
    "webhook.yaml",
    "access/deployment.yaml",
    "relay/deployment.yaml",
    "ui/deployment.yaml",
  ];
  const deployments = files
    .flatMap((file) => documentsOf(read(`manifests/${file}`)))
    .filter((document) => document.get("kind") === "Deployment");
  const running = (name: string): ObjectDocument => {
    const found = deployments.find((document) => componentOf(document) === name);
    if (found === undefined) throw new Error(`manifests: no Deployment runs ${name}`);
    return found;
  };
  const defaults = (name: string): DeploymentDefaults => defaultsOf(running(name));
  const [repository = ""] = deployments.map(repositoryOf);
  return defaultValues(
    {
      controller: defaults("controller"),
      webhook: defaults("webhook"),
      access: defaults("access"),
      relay: defaults("relay"),
      ui: defaults("ui"),
    },
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

const HELPERS = `{{- define "legation.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}
{{- define "legation.chart" -}}
{{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
`;

// The text of an object may have templates, as its YAML.
const EXTRA_OBJECTS = `{{- range .Values.extraObjects }}
---
{{- if kindIs "string" . }}
{{ tpl . $ }}
{{- else }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end }}
`;

function hostConfig(): string {
  const metadata = { name: HOST_CONFIG_NAME, namespace: SYSTEM_NAMESPACE, labels: INSTALLED_LABELS };
  const manifest = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata,
    data: { [HOST_NAME_KEY]: "", [HOST_NETWORK_KEY]: "", [HOST_MCS_KEY]: "" },
  };
  return templates(stringify(manifest), (document, text) => {
    text.expression(document, ["data", HOST_NAME_KEY], ".Values.clusterName | quote");
    text.expression(document, ["data", HOST_NETWORK_KEY], ".Values.network | quote");
    text.expression(document, ["data", HOST_MCS_KEY], ".Values.mcs.enabled | quote");
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

/** The example is for member west. */
function relaysInMembers(read: (path: string) => string): string {
  const text = templates(read("examples/relay/in-member.yaml"), (document, lines) => {
    templateMemberRelay(document, lines);
    return undefined;
  });
  const each = text.replaceAll("west", "{{ $member | quote }}");
  return when(".Values.relay.enabled", `{{- range $member := .Values.relay.members }}\n---\n${each}{{- end }}\n`);
}

function monitoring(read: (path: string) => string): string {
  return templates(
    read("examples/monitoring/prometheus-operator.yaml"),
    (document) => {
      if (document.get("kind") === "PrometheusRule") return ".Values.monitoring.rules";
      const part = PARTS.find((each) => document.getIn(["metadata", "namespace"]) === `legation-${each}`);
      const wanted = ".Values.monitoring.podMonitors";
      return part === undefined ? wanted : `and ${wanted} .Values.${part}.enabled`;
    },
    // The first counts where both have a label.
    "merge (dict) $.Values.monitoring.labels $.Values.commonLabels",
  );
}

function networkPolicies(read: (path: string) => string): string {
  const text = ["system", ...PARTS].map((name) => {
    const policies = templates(read(`manifests/network-policies/${name}.yaml`));
    return name === "system" ? policies : when(`.Values.${name}.enabled`, policies);
  });
  return when(".Values.networkPolicy.enabled", text.join("---\n"));
}
