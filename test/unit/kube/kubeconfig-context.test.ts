import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readWrittenContext } from "../../../src/kube/kubeconfig-context.ts";

const WEST = { name: "west", cluster: { server: "https://west", "x-of-a-tool": 1 } };
const ALICE = { name: "alice", user: { token: "t", "auth-provider": { name: "x" } } };
const CONTEXT = { name: "west", context: { cluster: "west", user: "alice", namespace: "shop" } };
const USED = { namespace: "shop", userName: "alice", cluster: WEST.cluster, user: ALICE.user };

/** Writes kubeconfigs, and returns the variable that names them. */
function written(...files: readonly object[]): string {
  const folder = mkdtempSync(join(tmpdir(), "legation-context-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const paths = files.map((file, index) => {
    const path = join(folder, `${index}.json`);
    writeFileSync(path, JSON.stringify(file));
    return path;
  });
  return paths.join(delimiter);
}

test("returns the current context with fields that only other programs know, of all files together", () => {
  const env = {
    KUBECONFIG: written(
      { clusters: [WEST], contexts: null },
      { contexts: [CONTEXT], users: [ALICE], "current-context": "west" },
    ),
  };
  expect(readWrittenContext({ env })).toEqual(USED);
});

test("passes over entries that it does not use, whatever is wrong with them", () => {
  const file = {
    clusters: [{ name: "old", cluster: null }, { name: "older", cluster: {} }, WEST],
    users: [{ name: "old", user: null }, { name: "older", user: "x" }, ALICE],
    contexts: [{ name: "old" }, { name: "older", context: { cluster: null } }, CONTEXT],
  };
  expect(readWrittenContext({ env: { KUBECONFIG: written(file) }, context: "west" })).toEqual(USED);
});

test.each([
  ["no current context", { contexts: [CONTEXT] }],
  ["a context without its cluster", { contexts: [CONTEXT], "current-context": "west" }],
  [
    "a cluster without a server",
    { clusters: [{ name: "west", cluster: {} }], contexts: [CONTEXT], "current-context": "west" },
  ],
])("refuses %s", (_, file) => {
  expect(() => readWrittenContext({ env: { KUBECONFIG: written(file) } })).toThrow(
    /no context .*with a cluster; name one/,
  );
});
