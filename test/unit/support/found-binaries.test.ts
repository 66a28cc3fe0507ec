import { expect, test } from "vitest";
import { chooseSources, minorOf, newestOf } from "../../support/clusters/found-binaries.ts";

const NAMES = ["etcd", "kubectl", "kwok"] as const;
const PLACES = { assets: "/assets", cache: "/cache", envtest: "/envtest" };
const inPath = { path: "/usr/bin/kubectl", from: "PATH" };

/** Chooses among these executable files. */
function choose(files: readonly string[], places: Partial<Parameters<typeof chooseSources>[2]> = {}) {
  return Object.fromEntries(chooseSources(NAMES, (path) => files.includes(path), { ...PLACES, path: {}, ...places }));
}

test.each<[string, readonly string[], string | undefined]>([
  ["KUBEBUILDER_ASSETS before all others", ["/assets/etcd", "/cache/etcd", "/envtest/etcd"], "/assets/etcd"],
  ["what was built before setup-envtest's folder", ["/cache/etcd", "/envtest/etcd"], "/cache/etcd"],
  ["setup-envtest's folder", ["/envtest/etcd"], "/envtest/etcd"],
  ["nothing, so that it is built", [], undefined],
])("takes %s", (_what, files, path) => {
  expect(choose(files).etcd?.path).toBe(path);
});

test("takes a program of PATH where no folder has it, and does not ask for it otherwise", () => {
  let asked = 0;
  const path = {
    kubectl: () => {
      asked += 1;
      return inPath;
    },
  };
  expect(choose(["/cache/kubectl"], { path }).kubectl).toEqual({ path: "/cache/kubectl", from: "/cache" });
  expect(asked).toBe(0);
  expect(choose([], { path }).kubectl).toEqual(inPath);
});

test("looks in no folder that is not there", () => {
  const files = ["/assets/etcd", "/envtest/etcd"];
  expect(choose(files, { assets: undefined, envtest: undefined }).etcd).toBeUndefined();
});

test.each([
  ["kwok version v0.7.2 go1.26 (linux/amd64)", { major: 0, minor: 7 }],
  ['{"clientVersion": {"major": "1", "gitVersion": "v1.36.2"}}', { major: 1, minor: 36 }],
  ["\tk8s.io/kubernetes v1.36.0", { major: 1, minor: 36 }],
  ["command not found", undefined],
])("reads the version of %j", (text, minor) => {
  expect(minorOf(text)).toEqual(minor);
});

test.each([
  [["1.36.2-linux-amd64", "1.36.10-linux-amd64", "1.37.0-linux-amd64"], "1.36.10-linux-amd64"],
  [["1.3.6-linux-amd64", "1.360.0-linux-amd64", "1.36.x"], undefined],
  [[], undefined],
])("of %j takes the newest with the minor version of the planes", (folders, newest) => {
  expect(newestOf(folders, { major: 1, minor: 36 })).toBe(newest);
});
