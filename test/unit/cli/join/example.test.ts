import { readFileSync } from "node:fs";
import fastJsonPatch from "fast-json-patch";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { accessObjects, loadMemberRole, systemNamespace } from "../../../../src/cli/join/grant-access.ts";
import { credentialsSecretName } from "../../../../src/cli/member/access.ts";
import type { Manifest } from "../../../../src/cli/shared/manifests.ts";

const read = (name: string): string =>
  readFileSync(new URL(`../../../../examples/join/${name}`, import.meta.url), "utf8");

const labelMap = z.record(z.string(), z.string());
const kustomizationSchema = z.looseObject({
  resources: z.tuple([z.literal("access.yaml"), z.literal("../../../manifests/member")]),
  patches: z.tuple([z.looseObject({ patch: z.string() })]),
});

test("has the manifests of `legation join` in examples/join", async () => {
  const role = await loadMemberRole(false);
  const account = { hostId: "11111111-2222-3333-4444-555555555555", hostName: "", cluster: "west" };
  const { role: wanted, user, binding } = accessObjects(role, account);
  const { patches } = kustomizationSchema.parse(parse(read("member/kustomization.yaml")));
  const patched = fastJsonPatch.applyPatch(structuredClone(role), parse(patches[0].patch)).newDocument;
  // Annotations are left out: people read them, and kustomize cannot take them from the manifests.
  const plain = ({ metadata: { annotations: _, ...metadata }, ...rest }: Manifest): Manifest => ({ ...rest, metadata });
  const labels = { ...labelMap.parse(role.metadata.labels), ...labelMap.parse(wanted.metadata.labels) };
  const { metadata, ...rest } = plain(wanted);
  expect(patched).toEqual({ ...rest, metadata: { ...metadata, labels } });
  const access = parseAllDocuments(read("member/access.yaml")).map((document) => document.toJS());
  expect(access).toEqual([systemNamespace, plain(user), plain(binding)]);

  const cluster = parse(read("cluster.yaml"));
  expect(cluster.spec.credentialsSecret.name).toBe(credentialsSecretName(cluster.metadata.name));
});
