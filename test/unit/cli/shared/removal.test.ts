import { describe, expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { dropFinalizer, remove } from "../../../../src/cli/shared/removal.ts";
import type { KubeError, KubeErrorCode } from "../../../../src/kube/errors.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();
const failure = (code: KubeErrorCode): KubeError => kubeError(code, "no", { cluster: "fake", verb: "patch" });
const object = (resourceVersion: string, finalizers: string[], uid = "u"): Stored<KubeObject> => ({
  metadata: { name: "web", namespace: "team", uid, resourceVersion, finalizers },
});

describe("removing an object", () => {
  test.each([
    ["NotFound", undefined, false],
    ["Conflict", "u", false],
  ] as const)("%s means that it is gone", async (code, uid, expected) => {
    const client = fakeClient({ delete: () => Promise.reject(failure(code)) });
    const options = { signal, ...(uid === undefined ? {} : { uid }) };
    expect(await remove(client, pods, { name: "web" }, options)).toBe(expected);
  });

  test.each([
    ["Forbidden", "u"],
    ["Conflict", undefined],
  ] as const)("%s with the precondition %s is an error", async (code, uid) => {
    const client = fakeClient({ delete: () => Promise.reject(failure(code)) });
    const options = { signal, ...(uid === undefined ? {} : { uid }) };
    await expect(remove(client, pods, { name: "web" }, options)).rejects.toMatchObject({ code });
  });
});

describe("dropping a finalizer", () => {
  /** A server that refuses the first patch because the object is `now` another. */
  const changing = (
    now: Stored<KubeObject> | undefined,
  ): { patches: unknown[]; client: ReturnType<typeof fakeClient> } => {
    const patches: unknown[] = [];
    const client = fakeClient({
      find: async () => (now === undefined ? undefined : JSON.parse(JSON.stringify(now))),
      patch: async (_resource, _ref, patch) => {
        patches.push(patch.body);
        if (patches.length === 1) throw failure("Unprocessable");
        return Promise.reject(new Error("its answer is not used"));
      },
    });
    return { patches, client };
  };

  test("sends no request where the finalizer is missing", async () => {
    await dropFinalizer(fakeClient({}), pods, object("1", ["other"]), "ours", signal);
  });

  test("tests the entry that it removes", async () => {
    const { client, patches } = changing(undefined);
    await dropFinalizer(client, pods, object("1", ["other", "ours"]), "ours", signal);
    expect(patches).toEqual([
      [
        { op: "test", path: "/metadata/uid", value: "u" },
        { op: "test", path: "/metadata/finalizers/1", value: "ours" },
        { op: "remove", path: "/metadata/finalizers/1" },
      ],
    ]);
  });

  test("retries after a concurrent change of the list", async () => {
    const { client, patches } = changing(object("2", ["ours"]));
    await expect(dropFinalizer(client, pods, object("1", ["other", "ours"]), "ours", signal)).rejects.toThrow(
      "not used",
    );
    expect(patches[1]).toContainEqual({ op: "remove", path: "/metadata/finalizers/0" });
  });

  test.each([
    ["ours", false],
    ["other", true],
  ])("reports whether admission put it back: %s stays", async (left, isGone) => {
    const client = fakeClient({ patch: async () => object("2", [left]) });
    await expect(dropFinalizer(client, pods, object("1", ["ours"]), "ours", signal)).resolves.toBe(isGone);
  });

  test("leaves an object alone that was created anew", async () => {
    const { client, patches } = changing(object("2", ["ours"], "another"));
    await dropFinalizer(client, pods, object("1", ["ours"]), "ours", signal);
    expect(patches).toHaveLength(1);
  });

  test("gives up when the server refuses an unchanged object", async () => {
    const { client } = changing(object("1", ["ours"]));
    await expect(dropFinalizer(client, pods, object("1", ["ours"]), "ours", signal)).rejects.toMatchObject({
      code: "Unprocessable",
    });
  });
});
