import { expect, test } from "vitest";
import { OWNER_ANNOTATION } from "../../../src/api/keys.ts";
import { copyMetadataPatch, isCopy, isLabelled, standsFor, wantedMetadata } from "../../../src/copies/copy-metadata.ts";
import { DEPENDENCIES } from "../../../src/copies/dependencies.ts";
import { toCopy } from "../../../src/copies/kind.ts";
import { configMaps, secrets } from "../../../src/kube/resources.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { host, source, stored } from "./builders.ts";

test("recognises a copy by its labels, and restores removed annotations", () => {
  const before = source();
  const copy = stored(toCopy(DEPENDENCIES.Secret, before, host));
  const { annotations: _, ...metadata } = copy.metadata;
  const stripped = { ...copy, metadata };
  expect(isLabelled(stripped, "host-id")).toBe(true);
  // EndpointSlices of a copied Service carry its labels over.
  expect(isCopy(stripped, "host-id", secrets)).toBe(false);
  expect(standsFor(stripped, before)).toBe(false);
  expect(wantedMetadata(stripped, { source: before, host, type: secrets })?.annotations).toEqual(
    copy.metadata.annotations,
  );
  const { labels: __, ...unlabelled } = copy.metadata;
  expect(isLabelled({ ...copy, metadata: unlabelled }, "host-id")).toBe(false);
});

test("updates labels and annotations by key: others' additions stay, removed ones go", () => {
  const before = source({ metadata: { labels: { gone: "1", app: "web" } } });
  const copy = stored(toCopy(DEPENDENCIES.ConfigMap, before, host));
  expect(wantedMetadata(copy, { source: before, host, type: configMaps })).toBeUndefined();
  copy.metadata.labels = { ...copy.metadata.labels, theirs: "1" };
  expect(wantedMetadata(copy, { source: before, host, type: configMaps })).toBeUndefined();
  const after = source({ metadata: { labels: { app: "api" } } });
  const wanted = wantedMetadata(copy, { source: after, host, type: configMaps });
  expect(wanted?.labels).toEqual({
    app: "api",
    theirs: "1",
    "legation.dev/host": "host-id",
    "legation.dev/copy": "true",
  });
});

test("names uid and version in a metadata patch, and touches no content", () => {
  const after = source({ metadata: { labels: { app: "api" } }, data: { k: "v" }, immutable: true });
  const patch = copyMetadataPatch(stored(toCopy(DEPENDENCIES.ConfigMap, source(), host)), {
    source: after,
    host,
    type: configMaps,
  });
  expect(patch).toEqual([
    { op: "add", path: "/metadata/uid", value: "copy-uid" },
    { op: "add", path: "/metadata/resourceVersion", value: "3" },
    { op: "add", path: "/metadata/labels", value: expect.objectContaining({ app: "api" }) },
    expect.objectContaining({ path: "/metadata/annotations" }),
  ]);
});

test("keeps an owner annotation of 0.1, which names no kind, until the copy changes", () => {
  const before = source({ metadata: { labels: { app: "web" } } });
  const copy = stored(toCopy(DEPENDENCIES.ConfigMap, before, host));
  const { kind, ...owner } = ownerOf(copy) ?? {};
  expect(kind).toBe("ConfigMap");
  copy.metadata.annotations = { ...copy.metadata.annotations, [OWNER_ANNOTATION]: JSON.stringify(owner) };
  const old = structuredClone(copy);
  expect(wantedMetadata(old, { source: before, host, type: configMaps })).toBeUndefined();
  const after = source({ metadata: { labels: { app: "api" } } });
  const wanted = wantedMetadata(old, { source: after, host, type: configMaps });
  expect(JSON.parse(wanted?.annotations[OWNER_ANNOTATION] ?? "{}")).toEqual({ ...owner, kind });
});
