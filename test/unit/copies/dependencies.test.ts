import { describe, expect, test } from "vitest";
import { copyMetadataPatch, isCopy, standsFor } from "../../../src/copies/copy-metadata.ts";
import type { DependencyKind } from "../../../src/copies/dependencies.ts";
import { DEPENDENCIES, type DependencyObject } from "../../../src/copies/dependencies.ts";
import { toCopy } from "../../../src/copies/kind.ts";
import { configMaps, secrets } from "../../../src/kube/resources.ts";
import { drift, host, patchOf, source, stored } from "./builders.ts";

test("gives a copy its source's name, labels and content only", () => {
  const copy = toCopy(
    DEPENDENCIES.Secret,
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
        "legation.dev/owner": JSON.stringify({
          cluster: "cern",
          kind: "Secret",
          namespace: "team",
          name: "a",
          uid: "source-uid",
        }),
        "legation.dev/forwarded": JSON.stringify({ labels: ["app"], annotations: [] }),
      },
    },
    type: "kubernetes.io/tls",
    data: { k: "dg==" },
    immutable: true,
  });
  expect(isCopy(copy, "host-id", secrets)).toBe(true);
  expect(isCopy(copy, "other-host", secrets)).toBe(false);
  expect(standsFor(copy, source())).toBe(true);
});

test("copies a token Secret as Opaque, which the member does not fill", () => {
  const annotations = { "kubernetes.io/service-account.name": "worker", "kubernetes.io/service-account.uid": "u" };
  const copy = toCopy(
    DEPENDENCIES.Secret,
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
])("gives a copy of a %s the annotations %j", (kind, kept) => {
  const annotations = {
    "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/a",
    "kubectl.kubernetes.io/last-applied-configuration": "{}",
    "kubernetes.io/enforce-mountable-secrets": "true",
    "replicator.v1.mittwald.de/replicate-to": "kube-system",
    "reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true",
  };
  const from = source({ metadata: { annotations } });
  const copy = toCopy(DEPENDENCIES[kind], from, host);
  const added = ["legation.dev/owner", "legation.dev/forwarded"];
  expect(Object.keys(copy.metadata?.annotations ?? {})).toEqual([...kept, ...added]);
  expect(drift(DEPENDENCIES[kind], stored(copy), from, host)).toBe("none");
});

test("treats an unset field as no content, but `automountServiceAccountToken: false` as content", () => {
  const bodyOf = (kind: DependencyKind, parts: DependencyObject): object =>
    DEPENDENCIES[kind].body({ ...parts, metadata: source().metadata }, host);
  expect(bodyOf("ConfigMap", { data: {}, immutable: false })).toEqual({});
  expect(bodyOf("Secret", {})).toEqual({ type: "Opaque" });
  expect(bodyOf("ServiceAccount", { imagePullSecrets: [], automountServiceAccountToken: false })).toEqual({
    automountServiceAccountToken: false,
  });
});

test("sets every field of the content in a content patch", () => {
  const after = source({ data: { k: "v" }, immutable: true });
  const copy = stored(toCopy(DEPENDENCIES.ConfigMap, source(), host));
  const patch = patchOf(DEPENDENCIES.ConfigMap, copy, after, host);
  expect(patch).toEqual([
    ...copyMetadataPatch(copy, { source: after, host, type: configMaps }),
    { op: "add", path: "/data", value: { k: "v" } },
    { op: "add", path: "/binaryData", value: {} },
    { op: "add", path: "/immutable", value: true },
  ]);
});

describe("a copy with annotations of its source, as versions before made them,", () => {
  const spread = { "example.com/spread": "*" };
  const object = source({ immutable: true, data: { k: "dg==" }, metadata: { annotations: spread } });
  const made = stored(toCopy(DEPENDENCIES.Secret, object, host));
  const forwarded = JSON.stringify({ labels: [], annotations: Object.keys(spread) });
  const annotations = { ...made.metadata.annotations, ...spread, theirs: "1", "legation.dev/forwarded": forwarded };
  const before = { ...made, metadata: { ...made.metadata, annotations } };

  test("loses them by one patch of its metadata, and keeps what the member added", () => {
    const patch = patchOf(DEPENDENCIES.Secret, before, object, host) as { path: string; value: object }[];
    expect(patch.map(({ path }) => path)).not.toContain("/data");
    const left = patch.find(({ path }) => path === "/metadata/annotations")?.value ?? {};
    expect(left).toEqual({ ...made.metadata.annotations, theirs: "1" });
    const after = { ...before, metadata: { ...before.metadata, annotations: left as Record<string, string> } };
    expect(drift(DEPENDENCIES.Secret, after, object, host)).toBe("none");
  });

  test("serves pods meanwhile, unless it is an account, which webhooks read when pods are created", () => {
    const { Secret, ServiceAccount } = DEPENDENCIES;
    expect(drift(Secret, before, object, host)).toBe("metadata");
    expect(drift(Secret, { ...before, immutable: false }, source({ data: { k: "bmV3" } }), host)).toBe("content");
    expect(drift(Secret, before, { ...object, metadata: { ...object.metadata, uid: "later" } }, host)).toBe("content");
    const account = source({ metadata: { annotations: { role: "one" } } });
    const copy = stored(toCopy(ServiceAccount, account, host));
    expect(drift(ServiceAccount, copy, account, host)).toBe("none");
    const other = source({ metadata: { annotations: { role: "another" } } });
    expect(drift(ServiceAccount, copy, other, host)).toBe("content");
  });
});

test.each<[string, DependencyKind, DependencyObject, DependencyObject, string]>([
  ["data of a Secret is changed", "Secret", { data: { k: "v" } }, { data: { k: "w" } }, "content"],
  ["the type of a Secret is not", "Secret", { type: "example.com/t" }, {}, "immutable"],
  ["data of an immutable Secret is not", "Secret", { immutable: true }, { data: { k: "w" } }, "immutable"],
  ["a description is changed", "PriorityClass", { value: 5 }, { value: 5, description: "x" }, "content"],
  ["a value is not", "PriorityClass", { value: 5 }, { value: 6 }, "immutable"],
  [
    "an overhead is changed",
    "RuntimeClass",
    { handler: "runc" },
    { handler: "runc", overhead: { podFixed: {} } },
    "content",
  ],
  ["a handler is not", "RuntimeClass", { handler: "runc" }, { handler: "kata" }, "immutable"],
])("tells how a copy drifts: %s", (_, kind, before, after, expected) => {
  const copy = stored(toCopy(DEPENDENCIES[kind], source(before), host));
  expect(drift(DEPENDENCIES[kind], copy, source(after), host)).toBe(expected);
});

test.each<[string, object]>([
  ["a label has changed", { labels: { "helm.sh/chart": "web-2" } }],
  ["it was made anew with the same content", { uid: "later" }],
])("patches only the metadata of an immutable copy after %s", (_, metadata) => {
  const immutable = source({ data: {}, immutable: true });
  const copy = stored(toCopy(DEPENDENCIES.Secret, immutable, host));
  const after = { ...immutable, metadata: { ...immutable.metadata, ...metadata } };
  expect(patchOf(DEPENDENCIES.Secret, copy, after, host)).toMatchObject([
    { path: "/metadata/uid" },
    { path: "/metadata/resourceVersion" },
    { path: "/metadata/labels" },
    { path: "/metadata/annotations" },
  ]);
});
