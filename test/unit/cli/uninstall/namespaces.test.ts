import { expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { unlabelNamespaces } from "../../../../src/cli/uninstall/objects.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();

function optedIn(name: string): Stored<KubeObject> {
  const labels = { "legation.dev/delegation": "all" };
  return { metadata: { name, uid: `uid of ${name}`, resourceVersion: "1", labels } };
}

function unlabel(code: KubeErrorCode): { readonly told: string[]; readonly done: Promise<readonly string[]> } {
  const told: string[] = [];
  const host = fakeClient({
    list: async () => ({ items: ["a", "b", "c"].map(optedIn), resourceVersion: "1", size: 0 }),
    patch: async (_resource, { name }, { body }) => {
      const labels = { "legation.dev/delegation": null };
      expect((body as KubeObject).metadata).toEqual({ uid: `uid of ${name}`, labels });
      if (name === "b") throw kubeError(code, "no", { cluster: "host", verb: "patch", resource: "namespaces" });
      return {};
    },
  });
  return { told, done: unlabelNamespaces({ host, signal, report: (line) => told.push(line) }) };
}

test.each(["NotFound", "Conflict"] as const)("goes on after a namespace vanished (%s)", async (code) => {
  const { told, done } = unlabel(code);
  expect(await done).toEqual(["a", "c"]);
  expect(told).toEqual(["a", "c"].map((name) => `Namespace ${name}: label legation.dev/delegation=all taken off`));
});

test("fails for a namespace that may not be changed", async () => {
  await expect(unlabel("Forbidden").done).rejects.toMatchObject({ code: "Forbidden" });
});
