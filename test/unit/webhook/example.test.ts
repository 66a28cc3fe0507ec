import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { variableOf } from "../../../src/cli/shared/command.ts";
import { webhookCommand } from "../../../src/cli/webhook/command.ts";

const ROOT = new URL("../../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");

const podTemplate = z.object({
  containers: z.tuple([
    z.looseObject({
      name: z.string(),
      env: z.array(z.object({ name: z.string(), value: z.string() })),
      volumeMounts: z.tuple([z.object({ name: z.string(), mountPath: z.string(), readOnly: z.literal(true) })]),
    }),
  ]),
  volumes: z.tuple([z.object({ name: z.string(), secret: z.object({ secretName: z.string() }) })]),
});
const certificate = z.looseObject({
  kind: z.literal("Certificate"),
  metadata: z.object({ name: z.literal("legation-webhook"), namespace: z.string() }),
  spec: z.looseObject({ dnsNames: z.array(z.string()), secretName: z.string() }),
});

const specOf = (file: string): unknown => parse(read(`examples/webhook-certificate/${file}`)).spec.template.spec;

const named = (documents: readonly unknown[], schema: z.ZodType): unknown =>
  documents.find((document) => schema.safeParse(document).success);

test("examples/webhook-certificate fits the webhook's Deployment, Service and flags", () => {
  const issued = parseAllDocuments(read("examples/webhook-certificate/certificate.yaml")).map((each) => each.toJS());
  const { spec, metadata } = certificate.parse(named(issued, certificate));
  const patch = podTemplate.parse(specOf("patch.yaml"));
  const [container] = patch.containers;
  const [{ mountPath, name: mounted }] = container.volumeMounts;
  const [{ name: volume, secret }] = patch.volumes;

  const installed = parseAllDocuments(read("manifests/webhook.yaml")).map((each) => each.toJS());
  const [service, deployment] = ["Service", "Deployment"].map((kind) => installed.find((each) => each.kind === kind));
  expect(container.name).toBe(deployment.spec.template.spec.containers[0].name);
  expect(spec.dnsNames).toEqual([`${service.metadata.name}.${service.metadata.namespace}.svc`]);
  expect(metadata.namespace).toBe(deployment.metadata.namespace);

  expect(mounted).toBe(volume);
  expect(secret.secretName).toBe(spec.secretName);
  const files = { "--tls-cert-file": "tls.crt", "--tls-key-file": "tls.key", "--ca-bundle-file": "ca.crt" };
  const wanted = Object.entries(files).map(([long, file]) => {
    const option = webhookCommand.flags.find((each) => each.long === long);
    return { name: option === undefined ? "" : variableOf(option), value: `${mountPath}/${file}` };
  });
  expect(container.env).toEqual(wanted);
});

test("remove.yaml removes all that patch.yaml adds", () => {
  const removal = z.object({
    containers: z.tuple([
      z.object({
        name: z.string(),
        env: z.array(z.object({ name: z.string(), $patch: z.literal("delete") })),
        volumeMounts: z.array(z.object({ mountPath: z.string(), $patch: z.literal("delete") })),
      }),
    ]),
    volumes: z.array(z.object({ name: z.string(), $patch: z.literal("delete") })),
  });
  const { containers, volumes } = podTemplate.parse(specOf("patch.yaml"));
  const removed = removal.parse(specOf("remove.yaml"));
  expect(removed.containers[0].name).toBe(containers[0].name);
  expect(removed.containers[0].env.map(({ name }) => name)).toEqual(containers[0].env.map(({ name }) => name));
  expect(removed.containers[0].volumeMounts.map(({ mountPath }) => mountPath)).toEqual(
    containers[0].volumeMounts.map(({ mountPath }) => mountPath),
  );
  expect(removed.volumes.map(({ name }) => name)).toEqual(volumes.map(({ name }) => name));
});
