import { expect, test } from "vitest";
import { copyMetadataPatch, isCopy, standsFor } from "../../../src/copies/copy.ts";
import { contentOf, copyPatch, hasMetadataOf, toCopy } from "../../../src/copies/dependencies.ts";
import type { DependencyKind } from "../../../src/pods/dependencies.ts";
import { host, source, stored } from "./builders.ts";

test("a copy has its source's name, labels and content only", () => {
  const copy = toCopy(
    "Secret",
    source({
      metadata: {
        labels: { app: "web" },
        annotations: { note: "for tools of the host", "legation.dev/other": "x" },
        finalizers: ["example.com/keep"],
        ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid: "u" }],
      },
      type: "kubernetes.io/tls",
      data: { k: "dg==" },
      immutable: true,
    }),
    host,
  );
  expect(copy).toEqual({
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: "a",
      namespace: "team",
      labels: { app: "web", "legation.dev/host": "host-id", "legation.dev/copy": "true" },
      annotations: {
        "legation.dev/owner": JSON.stringify({ cluster: "cern", namespace: "team", name: "a", uid: "source-uid" }),
        "legation.dev/forwarded": JSON.stringify({ labels: ["app"], annotations: [] }),
      },
    },
    type: "kubernetes.io/tls",
    data: { k: "dg==" },
    immutable: true,
  });
  expect(isCopy(copy, "host-id")).toBe(true);
  expect(isCopy(copy, "other-host")).toBe(false);
  expect(standsFor(copy, source())).toBe(true);
});

test("copies a token Secret as Opaque, which the member does not fill", () => {
  const annotations = { "kubernetes.io/service-account.name": "worker", "kubernetes.io/service-account.uid": "u" };
  const copy = toCopy(
    "Secret",
    source({ metadata: { annotations }, type: "kubernetes.io/service-account-token", data: { token: "dA==" } }),
    host,
  );
  expect(copy).toMatchObject({ type: "Opaque", data: { token: "dA==" } });
  expect(Object.keys(copy.metadata?.annotations ?? {})).toEqual(["legation.dev/owner", "legation.dev/forwarded"]);
});

test.each<[DependencyKind, string[]]>([
  // The member's cloud reads these for the pods' identity.
  ["ServiceAccount", ["eks.amazonaws.com/role-arn"]],
  // Replicators in the member would act on these.
  ["Secret", []],
  ["ConfigMap", []],
])("a copy of a %s keeps the annotations %j", (kind, kept) => {
  const annotations = {
    "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/a",
    "kubectl.kubernetes.io/last-applied-configuration": "{}",
    "kubernetes.io/enforce-mountable-secrets": "true",
    "replicator.v1.mittwald.de/replicate-to": "kube-system",
    "reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true",
  };
  const from = source({ metadata: { annotations } });
  const copy = toCopy(kind, from, host);
  const added = ["legation.dev/owner", "legation.dev/forwarded"];
  expect(Object.keys(copy.metadata?.annotations ?? {})).toEqual([...kept, ...added]);
  expect(hasMetadataOf(kind, stored(copy), from, host)).toBe(true);
});

test("treats an unset field as no content, but `automountServiceAccountToken: false` as content", () => {
  expect(contentOf("ConfigMap", { data: {}, immutable: false })).toEqual({});
  expect(contentOf("Secret", {})).toEqual({ type: "Opaque" });
  expect(contentOf("ServiceAccount", { imagePullSecrets: [], automountServiceAccountToken: false })).toEqual({
    automountServiceAccountToken: false,
  });
});

test("a content patch sets every field of the content", () => {
  const after = source({ data: { k: "v" }, immutable: true });
  const copy = stored(toCopy("ConfigMap", source(), host));
  const patch = copyPatch("ConfigMap", copy, after, host);
  expect(patch).toEqual([
    ...copyMetadataPatch(copy, after, host),
    { op: "add", path: "/data", value: { k: "v" } },
    { op: "add", path: "/binaryData", value: {} },
    { op: "add", path: "/immutable", value: true },
  ]);
});
