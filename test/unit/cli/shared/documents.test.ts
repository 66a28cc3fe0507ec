import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { parseDocuments, readDocuments } from "../../../../src/cli/shared/documents.ts";
import { podsOf, workloadKind } from "../../../../src/cli/simulation/workloads.ts";
import { processorMs } from "../../../support/harness/processor-time.ts";

const { signal } = new AbortController();
const pod = (name: string): string => `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\n`;

function folder(files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), "legation-plan-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

describe("reads manifests", () => {
  test("from files, folders and standard input, in the order of documents and lists", async () => {
    const list = JSON.stringify({
      apiVersion: "v1",
      kind: "List",
      items: [JSON.parse('{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"d-"}}')],
    });
    const path = folder({ "b.json": list, "a.yaml": `${pod("a")}---\n---\n${pod("b")}`, "notes.txt": "none" });
    const documents = await readDocuments([path, "-"], Readable.from([pod("e")]), signal);
    expect(documents.map(({ metadata }) => metadata.name ?? metadata.generateName)).toEqual(["a", "b", "d-", "e"]);
  });

  test.each([
    ["a: [", /m: document 1: /],
    ["kind: Pod", /m: document 1: apiVersion: /],
    [`${pod("a")}---\napiVersion: v1\nkind: Pod\nmetadata: {}\n`, /m: document 2: metadata\.name: is missing/],
    [`${pod("a")}---\n- 1`, /m: document 2: is no object of Kubernetes/],
    ["Error from server (NotFound)", /m: document 1: is no object of Kubernetes/],
    ['{"kind": "Pod", "metadata": ', /m: document 1: /],
    [
      `a: &a [x, x]\n${[..."bcdefghi"].map((key, i) => `${key}: &${key} [${`*${"abcdefghi"[i]},`.repeat(9)}]`).join("\n")}`,
      /m: document 1: .*alias/,
    ],
    ["kind: PodList\nitems: [{kind: Pod}]", /m: document 1: items\[0\]: apiVersion: /],
  ])("and names the place of what is wrong in %j", (text, problem) => {
    expect(() => parseDocuments(text, "m")).toThrow(problem);
  });

  test("without nulls and empty lists, and several documents of JSON", () => {
    const json = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "a", labels: null } });
    expect(parseDocuments(json, "m")).toEqual([{ apiVersion: "v1", kind: "Pod", metadata: { name: "a" } }]);
    expect(parseDocuments(`${json}\n---\n${json}`, "m")).toHaveLength(2);
    expect(parseDocuments('{"kind": "PodList", "items": null}', "m")).toEqual([]);
  });

  test("as YAML 1.1, like kubectl", () => {
    const manifest = [
      "apiVersion: v1",
      "kind: Pod",
      "metadata: {name: a}",
      "base: &base {image: web, tty: true}",
      "container: {<<: *base, name: main, tty: off}",
      "mode: 0644",
      "newer: 0o644",
      "least: -0o17",
      "hexadecimal: 0x1F",
      "truth: [yes, On, TRUE, n]",
      "quoted: ['yes', \"0644\"]",
      "large: 1_000",
      "ports: 22:22",
      "day: 2026-11-22",
      "none: ~",
    ].join("\n");
    const [object] = parseDocuments(manifest, "m");
    expect(object).toMatchObject({
      container: { image: "web", name: "main", tty: false },
      mode: 420,
      newer: 420,
      least: -15,
      hexadecimal: 31,
      truth: [true, true, true, false],
      quoted: ["yes", "0644"],
      large: 1000,
      ports: "22:22",
      day: "2026-11-22",
    });
    expect(object).not.toHaveProperty("none");
  });

  test("of thousands of objects within two seconds", () => {
    const items = Array.from({ length: 5000 }, (_, i) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `p${i}` },
    }));
    const text = JSON.stringify({ apiVersion: "v1", kind: "List", items }, undefined, 2);
    const took = processorMs(() => expect(parseDocuments(text, "m")).toHaveLength(5000));
    expect(took).toBeLessThan(2000);
  });

  test("from standard input until an interruption", async () => {
    const interruption = new AbortController();
    const reading = readDocuments(["-"], new PassThrough(), interruption.signal);
    interruption.abort();
    await expect(reading).rejects.toMatchObject({ name: "AbortError" });
  });

  test("and refuses a folder without manifests and a missing file", async () => {
    const path = folder({ "notes.txt": "" });
    await expect(readDocuments([path], Readable.from([]), signal)).rejects.toMatchObject({
      message: `${path}: the folder has no *.yaml, *.yml or *.json`,
      remedy: expect.stringContaining("give a folder that has some"),
    });
    await expect(readDocuments([join(path, "a.yaml")], Readable.from([]), signal)).rejects.toThrow(
      "a.yaml: there is no such file or folder",
    );
    await expect(readDocuments(["https://example.com/a.yaml"], Readable.from([]), signal)).rejects.toThrow(
      "is not fetched",
    );
  });
});

test.each([
  ["spec: {}", /Pod p: spec\.spec|Pod p: spec\.containers/],
  ["spec: {containers: []}", /spec\.containers/],
  ["spec: {containers: [{name: a, resources: 3}]}", /spec\.containers\.0\.resources/],
  ["spec: {containers: [{name: a}], tolerations: x}", /spec\.tolerations/],
  ["spec: {containers: [{name: a, env: {KEY: value}}]}", /Pod p: spec\.containers\.0\.env: /],
  ["spec: {containers: [{name: a, envFrom: [{configMapRef: x}]}]}", /spec\.containers\.0\.envFrom\.0\.configMapRef: /],
  [
    "spec: {containers: [{name: a}], volumes: [{name: v, projected: {sources: {}}}]}",
    /volumes\.0\.projected\.sources: /,
  ],
  ["spec: {containers: [{name: a}], imagePullSecrets: pull}", /spec\.imagePullSecrets: /],
  ["spec: {containers: [{name: a}], affinity: {podAffinity: [x]}}", /spec\.affinity\.podAffinity: /],
  [
    "spec: {containers: [{name: a, resources: {requests: {memory: 1GB}}}]}",
    /Pod p: spec\.containers\.0\.resources\.requests\.memory: "1GB" is no quantity; write a number, alone or with/,
  ],
  ["spec: {containers: [{name: a, resources: {limits: {cpu: -1}}}]}", /limits\.cpu: -1 is negative; write 0 or more/],
  ["spec: {containers: [{name: a}], overhead: {cpu: [1]}}", /spec\.overhead\.cpu: /],
])("refuses a pod with an invalid %s and names the field", (spec, problem) => {
  const [object] = parseDocuments(`${pod("p")}${spec}`, "m");
  expect(object).toBeDefined();
  expect(() => (object === undefined ? undefined : podsOf(object, "Pod"))).toThrow(problem);
});

test("knows no workload in a Deployment of another API group", () => {
  expect(workloadKind({ apiVersion: "apps/v1", kind: "Deployment" })).toBe("Deployment");
  expect(workloadKind({ apiVersion: "example.com/v1", kind: "Deployment" })).toBeUndefined();
  expect(workloadKind({ apiVersion: "v1", kind: "toString" })).toBeUndefined();
});
