import { expect, test } from "vitest";
import { copyMetadataPatch, isCopy, isLabelled, standsFor, wantedMetadata } from "../../../src/copies/copy-metadata.ts";
import { DEPENDENCIES } from "../../../src/copies/dependencies.ts";
import { toCopy } from "../../../src/copies/kind.ts";
import { host, source, stored } from "./builders.ts";

test("recognises a copy by its labels, and restores removed annotations", () => {
  const before = source();
  const copy = stored(toCopy(DEPENDENCIES.Secret, before, host));
  const { annotations: _, ...metadata } = copy.metadata;
  const stripped = { ...copy, metadata };
  expect(isLabelled(stripped, "host-id")).toBe(true);
  // EndpointSlices of a copied Service carry its labels over.
  expect(isCopy(stripped, "host-id")).toBe(false);
  expect(standsFor(stripped, before)).toBe(false);
  expect(wantedMetadata(stripped, before, host)?.annotations).toEqual(copy.metadata.annotations);
  const { labels: __, ...unlabelled } = copy.metadata;
  expect(isLabelled({ ...copy, metadata: unlabelled }, "host-id")).toBe(false);
});

test("updates labels and annotations by key: others' additions stay, removed ones go", () => {
  const before = source({ metadata: { labels: { gone: "1", app: "web" } } });
  const copy = stored(toCopy(DEPENDENCIES.ConfigMap, before, host));
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

test("names uid and version in a metadata patch, and touches no content", () => {
  const after = source({ metadata: { labels: { app: "api" } }, data: { k: "v" }, immutable: true });
  const patch = copyMetadataPatch(stored(toCopy(DEPENDENCIES.ConfigMap, source(), host)), after, host);
  expect(patch).toEqual([
    { op: "add", path: "/metadata/uid", value: "copy-uid" },
    { op: "add", path: "/metadata/resourceVersion", value: "3" },
    { op: "add", path: "/metadata/labels", value: expect.objectContaining({ app: "api" }) },
    expect.objectContaining({ path: "/metadata/annotations" }),
  ]);
});
