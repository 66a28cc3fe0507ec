import { expect, test } from "vitest";
import { firstRun } from "../../../scripts/demo/first-run.ts";
import { inParallel } from "../../support/clusters/build.ts";

test("names what the first run builds, and what of it setup-envtest has", () => {
  const text = firstRun(["etcd", "kube-apiserver", "kwok"]).join("\n");
  expect(text).toContain("builds etcd, kube-apiserver, kwok from source");
  expect(text).toContain("let setup-envtest download etcd, kube-apiserver:");
  expect(text).toContain('export KUBEBUILDER_ASSETS="$(setup-envtest use -p path)"');
});

test("says nothing of setup-envtest where it has nothing of what is missing", () => {
  expect(firstRun(["kwok"]).join("\n")).not.toContain("setup-envtest");
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
