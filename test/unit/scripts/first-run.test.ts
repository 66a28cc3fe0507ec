import { homedir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { firstRun, foundText } from "../../../scripts/demo/first-run.ts";
import { inParallel } from "../../support/clusters/build.ts";

const VERSIONS = { kubernetes: "1.36", kwok: "0.8" };

test("names what the first run builds, and what of it setup-envtest has", () => {
  const text = firstRun(["etcd", "kube-apiserver", "kwok"], VERSIONS).join("\n");
  expect(text).toContain("builds etcd, kube-apiserver, kwok from source");
  expect(text).toContain("let setup-envtest download etcd, kube-apiserver, which the next run finds:");
  expect(text).toContain("setup-envtest use 1.36");
  expect(text).toContain("A program in PATH will do, too: kwok 0.8 (");
});

test("says nothing of setup-envtest where it has nothing of what is missing", () => {
  expect(firstRun(["kube-scheduler"], VERSIONS).join("\n")).not.toMatch(/setup-envtest|PATH/);
});

test("names the places of binaries that are there, a line for each", () => {
  const cache = join(homedir(), ".cache", "legation");
  const sources = new Map([
    ["etcd", { path: join(cache, "etcd"), from: cache }],
    ["kubectl", { path: "/usr/bin/kubectl", from: "PATH" }],
    ["kube-apiserver", { path: join(cache, "kube-apiserver"), from: cache }],
    ["kwok", undefined],
  ]);
  expect(foundText(sources)).toEqual([
    "Uses etcd, kube-apiserver of ~/.cache/legation.",
    "Uses kubectl of PATH (/usr/bin).",
  ]);
});

test("builds several at a time, and begins no other after a failure", async () => {
  const begun: number[] = [];
  let atOnce = 0;
  let most = 0;
  await inParallel([1, 2, 3, 4, 5], 2, async (item) => {
    begun.push(item);
    atOnce += 1;
    most = Math.max(most, atOnce);
    await Promise.resolve();
    atOnce -= 1;
  });
  expect({ begun, most }).toEqual({ begun: [1, 2, 3, 4, 5], most: 2 });
  const tried: number[] = [];
  const failing = inParallel([1, 2, 3, 4], 1, async (item) => {
    tried.push(item);
    await Promise.resolve();
    if (item === 2) throw new Error("no disk");
  });
  await expect(failing).rejects.toThrow("no disk");
  expect(tried).toEqual([1, 2]);
});
