import { parse } from "yaml";
import { z } from "zod";
import { VERSION_LABEL } from "../../src/cli/shared/deployment-image.ts";
import { linesOf, type ObjectDocument, type TemplateText } from "./template.ts";
import type { Component, DeploymentDefaults } from "./values.ts";

const POD = ["spec", "template", "spec"] as const;
const CONTAINER = [...POD, "containers", 0] as const;

const quantities = z.record(z.string(), z.union([z.string(), z.number()]));
const deployment = z.looseObject({
  metadata: z.looseObject({ labels: z.record(z.string(), z.string()) }),
  spec: z.looseObject({
    replicas: z.number(),
    template: z.looseObject({
      spec: z.looseObject({
        priorityClassName: z.string().default(""),
        topologySpreadConstraints: z.array(z.looseObject({})).default([]),
        securityContext: z.looseObject({}),
        containers: z.tuple([
          z.looseObject({
            image: z.string(),
            args: z.array(z.string()),
            env: z.array(z.unknown()).optional(),
            resources: z.strictObject({ requests: quantities, limits: quantities }),
            securityContext: z.looseObject({}),
          }),
        ]),
      }),
    }),
  }),
});

const patch = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.tuple([z.object({ env: z.array(z.unknown()), volumeMounts: z.array(z.unknown()) })]),
        volumes: z.array(z.unknown()),
      }),
    }),
  }),
});

/** Returns a Deployment's own values. */
export function defaultsOf(document: ObjectDocument): DeploymentDefaults {
  const { spec } = deployment.parse(document.toJS());
  const { containers, priorityClassName, topologySpreadConstraints, securityContext } = spec.template.spec;
  const [container] = containers;
  return {
    replicas: spec.replicas,
    resources: container.resources,
    priorityClassName,
    topologySpreadConstraints,
    podSecurityContext: securityContext,
    securityContext: container.securityContext,
  };
}

/** Returns a Deployment's image without its tag. */
export function repositoryOf(document: ObjectDocument): string {
  const [{ image }] = deployment.parse(document.toJS()).spec.template.spec.containers;
  return image.replace(/:[^/:]*$/, "");
}

const HOSTS_FLAG = "--hosts=";

/** Returns the value of the page's flag `--hosts`. */
export function hostsOf(document: ObjectDocument): string[] {
  const flag = argsOf(document).find((arg) => arg.startsWith(HOSTS_FLAG));
  if (flag === undefined) throw new Error(`manifests/ui: no ${HOSTS_FLAG}`);
  return flag.slice(HOSTS_FLAG.length).split(",");
}

function argsOf(document: ObjectDocument): readonly string[] {
  return deployment.parse(document.toJS()).spec.template.spec.containers[0].args;
}

/** Returns the component that a Deployment runs. */
export function componentOf(document: ObjectDocument): string | undefined {
  return deployment.parse(document.toJS()).metadata.labels["app.kubernetes.io/component"];
}

/** Puts the chart's values into a Deployment. `certificatePatch`: YAML of what it needs for a certificate of cert-manager. */
export function templateDeployment(
  document: ObjectDocument,
  component: Component,
  text: TemplateText,
  certificatePatch?: string,
): void {
  const values = `$.Values.${component}`;
  const { env } = deployment.parse(document.toJS()).spec.template.spec.containers[0];
  if (component === "controller" || component === "webhook") templateShards(document, text);
  for (const labelled of [["metadata"], ["spec", "template", "metadata"]]) {
    text.expression(document, [...labelled, "labels", VERSION_LABEL], "$.Chart.AppVersion | quote");
  }
  if (component === "ui") templateHosts(document, text);
  else text.expression(document, ["spec", "replicas"], `${values}.replicas`);
  const metadata = ["spec", "template", "metadata"];
  text.block(document, [...metadata, "annotations"], `${values}.podAnnotations`, { optional: true });
  text.entries(document, [...metadata, "labels"], `${values}.podLabels`);
  text.block(document, [...CONTAINER, "resources"], `${values}.resources`);
  if (certificatePatch !== undefined) templateCertificate(document, text, certificatePatch);
  else if (env !== undefined) text.append(document, [...CONTAINER, "env"], `${values}.env`);
  else text.block(document, [...CONTAINER, "env"], `${values}.env`, { optional: true });
  text.scalar(document, [...POD, "priorityClassName"], `${values}.priorityClassName`);
  text.block(document, [...POD, "topologySpreadConstraints"], `${values}.topologySpreadConstraints`, {
    optional: true,
  });
  templatePod(document, POD, values, text);
}

/** Puts the values that every pod of the chart has into the pod at `path`. */
export function templatePod(
  document: ObjectDocument,
  path: readonly string[],
  values: string,
  text: TemplateText,
): void {
  const container = [...path, "containers", 0];
  templateImage(document, path, text);
  text.block(document, [...container, "securityContext"], `${values}.securityContext`, { optional: true });
  text.block(document, [...path, "securityContext"], `${values}.podSecurityContext`, { optional: true });
  for (const field of ["nodeSelector", "tolerations", "affinity"]) {
    text.block(document, [...path, field], `${values}.${field}`, { optional: true });
  }
}

function templateImage(document: ObjectDocument, path: readonly string[], text: TemplateText): void {
  const container = [...path, "containers", 0];
  text.expression(document, [...container, "image"], 'include "legation.image" $');
  text.scalar(document, [...container, "imagePullPolicy"], "$.Values.image.pullPolicy");
  text.block(document, [...path, "imagePullSecrets"], "$.Values.image.pullSecrets", { optional: true });
}

/** Puts the image into the relay of a member, whose nodes other values are not for. */
export function templateMemberRelay(document: ObjectDocument, text: TemplateText): void {
  templateImage(document, POD, text);
}

/** Tells a process the number of shards: webhook and controllers have to agree. */
function templateShards(document: ObjectDocument, text: TemplateText): void {
  text.lines(document, [...CONTAINER, "args", argsOf(document).length], (indent) => [
    `${indent}{{- if gt (int $.Values.controller.shards) 1 }}`,
    `${indent}- --shards={{ $.Values.controller.shards }}`,
    `${indent}{{- end }}`,
  ]);
}

function templateHosts(document: ObjectDocument, text: TemplateText): void {
  const index = argsOf(document).findIndex((arg) => arg.startsWith(HOSTS_FLAG));
  text.lines(document, [...CONTAINER, "args", index], (indent) => [
    `${indent}- {{ printf "${HOSTS_FLAG}%s" (join "," $.Values.ui.hosts) | quote }}`,
  ]);
}

/** Lets the webhook read cert-manager's Secret. */
function templateCertificate(document: ObjectDocument, text: TemplateText, certificatePatch: string): void {
  const { containers, volumes } = patch.parse(parse(certificatePatch)).spec.template.spec;
  const [{ env, volumeMounts }] = containers;
  const isManaged = 'eq $.Values.webhook.certificate.source "cert-manager"';
  const json = (value: unknown): string => JSON.stringify(value);
  text.lines(document, [...CONTAINER, "env"], (indent) => [
    `${indent}{{- if or (${isManaged}) $.Values.webhook.env }}`,
    `${indent}env:`,
    `${indent}  {{- if ${isManaged} }}`,
    ...env.map((each) => `${indent}  - ${json(each)}`),
    `${indent}  {{- end }}`,
    ...linesOf("$.Values.webhook.env", `${indent}  `),
    `${indent}{{- end }}`,
  ]);
  text.lines(document, [...CONTAINER, "volumeMounts"], (indent) => [
    `${indent}{{- if ${isManaged} }}`,
    `${indent}volumeMounts: ${json(volumeMounts)}`,
    `${indent}{{- end }}`,
  ]);
  text.lines(document, [...POD, "volumes"], (indent) => [
    `${indent}{{- if ${isManaged} }}`,
    `${indent}volumes: ${json(volumes)}`,
    `${indent}{{- end }}`,
  ]);
}
