import { expect, test } from "vitest";
import type { Stored } from "../../../src/api/kubernetes.ts";
import {
  contentOf,
  copyMetadataPatch,
  copyPatch,
  type DependencyObject,
  isCopy,
  isLabelled,
  standsFor,
  toCopy,
  wantedMetadata,
} from "../../../src/pods/dependencies-copy.ts";

const host = { id: "host-id", name: "cern" };

function source(parts: DependencyObject = {}): Stored<DependencyObject> {
  const { metadata, ...rest } = parts;
  return { metadata: { name: "a", namespace: "team", uid: "source-uid", resourceVersion: "7", ...metadata }, ...rest };
}

function stored(copy: DependencyObject): Stored<DependencyObject> {
  return { ...copy, metadata: { ...copy.metadata, name: "a", uid: "copy-uid", resourceVersion: "3" } };
}

test("a copy has its source's name, labels, annotations and content, and no more", () => {
  const copy = toCopy(
    "Secret",
    source({
      metadata: {
        labels: { app: "web" },
        annotations: {
          note: "kept",
          "legation.dev/other": "x",
          "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
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
        note: "kept",
        "legation.dev/owner": JSON.stringify({ cluster: "cern", namespace: "team", name: "a", uid: "source-uid" }),
        "legation.dev/forwarded": JSON.stringify({ labels: ["app"], annotations: ["note"] }),
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

test("a copy is told by its labels, and gets back the annotations that somebody has taken off", () => {
  const before = source();
  const copy = stored(toCopy("Secret", before, host));
  const { annotations: _, ...metadata } = copy.metadata;
  const stripped = { ...copy, metadata };
  expect(isLabelled(stripped, "host-id")).toBe(true);
  // As EndpointSlices have them, which a member's controller makes for the copy of a Service.
  expect(isCopy(stripped, "host-id")).toBe(false);
  expect(standsFor(stripped, before)).toBe(false);
  expect(wantedMetadata(stripped, before, host)?.annotations).toEqual(copy.metadata.annotations);
  const { labels: __, ...unlabelled } = copy.metadata;
  expect(isLabelled({ ...copy, metadata: unlabelled }, "host-id")).toBe(false);
});

test("a token Secret is copied as an ordinary one: a member would fill it with tokens of its own", () => {
  const annotations = { "kubernetes.io/service-account.name": "worker", "kubernetes.io/service-account.uid": "u" };
  const copy = toCopy(
    "Secret",
    source({ metadata: { annotations }, type: "kubernetes.io/service-account-token", data: { token: "dA==" } }),
    host,
  );
  expect(copy).toMatchObject({ type: "Opaque", data: { token: "dA==" } });
  expect(Object.keys(copy.metadata?.annotations ?? {})).toEqual(["legation.dev/owner", "legation.dev/forwarded"]);
});

test("what says nothing is not content, and `automountServiceAccountToken: false` says something", () => {
  expect(contentOf("ConfigMap", { data: {}, immutable: false })).toEqual({});
  expect(contentOf("Secret", {})).toEqual({ type: "Opaque" });
  expect(contentOf("ServiceAccount", { imagePullSecrets: [], automountServiceAccountToken: false })).toEqual({
    automountServiceAccountToken: false,
  });
});

test("labels and annotations follow by key: what others added to the copy stays, what the source lost goes", () => {
  const before = source({ metadata: { labels: { gone: "1", app: "web" } } });
  const copy = stored(toCopy("ConfigMap", before, host));
  expect(wantedMetadata(copy, before, host)).toBeUndefined();
  copy.metadata.labels = { ...copy.metadata.labels, theirs: "1" };
  expect(wantedMetadata(copy, before, host)).toBeUndefined();
  const wanted = wantedMetadata(copy, source({ metadata: { labels: { app: "api" } } }), host);
  expect(wanted?.labels).toEqual({
    app: "api",
    theirs: "1",
    "legation.dev/host": "host-id",
    "legation.dev/copy": "true",
  });
});

test("a patch of metadata names the copy that it is for, and touches no content", () => {
  const after = source({ metadata: { labels: { app: "api" } }, data: { k: "v" }, immutable: true });
  const patch = copyMetadataPatch(stored(toCopy("ConfigMap", source(), host)), after, host);
  expect(patch).toEqual([
    { op: "add", path: "/metadata/uid", value: "copy-uid" },
    { op: "add", path: "/metadata/resourceVersion", value: "3" },
    { op: "add", path: "/metadata/labels", value: expect.objectContaining({ app: "api" }) },
    expect.objectContaining({ path: "/metadata/annotations" }),
  ]);
});

test("a patch of a copy whose content differs sets every field of the content", () => {
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
