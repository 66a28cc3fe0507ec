import { describe, expect, test } from "vitest";
import { deleteProxy, unmarkOverflow } from "../../../../src/cli/uninstall/marked.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();

describe("a proxy that is deleted", () => {
  const FINALIZER = "legation.dev/delegate";
  const metadata = {
    name: "web",
    namespace: "shop",
    uid: "u",
    resourceVersion: "1",
    finalizers: ["x.io/y", FINALIZER],
  };
  const ref = { namespace: "shop", name: "web" };
  const withoutFinalizer = [
    { op: "test", path: "/metadata/uid", value: "u" },
    { op: "test", path: "/metadata/finalizers/1", value: FINALIZER },
    { op: "remove", path: "/metadata/finalizers/1" },
  ];

  /** Requests to the host, in order. */
  async function asked(phase: string): Promise<unknown[]> {
    const requests: unknown[] = [];
    const client = fakeClient({
      delete: async (_resource, of, { uid, gracePeriodSeconds } = {}) => {
        requests.push(["delete", of, { uid, gracePeriodSeconds }]);
      },
      patch: async (_resource, of, { body }) => {
        requests.push(["patch", of, body]);
        return { metadata: {} };
      },
    });
    await deleteProxy(client, { metadata, status: { phase } }, signal);
    return requests;
  }

  test.each(["Running", "Succeeded"])("has no grace and no finalizer when it is %s", async (phase) => {
    expect(await asked(phase)).toEqual([
      ["delete", ref, { uid: "u", gracePeriodSeconds: 0 }],
      ["patch", ref, withoutFinalizer],
    ]);
  });

  test.each([
    [
      "a policy that is gone still refuses it",
      () => {
        throw kubeError("Forbidden", "no", { cluster: "host", verb: "patch", namespace: "shop", objectName: "web" });
      },
    ],
    ["a webhook that is gone still puts it back", () => ({ metadata })],
  ])("is released in time where %s", async (_which, answer) => {
    let undone = 1;
    const gone = async (): Promise<void> => {};
    const patch = async () => (undone-- <= 0 ? { metadata: {} } : answer());
    await deleteProxy(fakeClient({ patch, delete: gone }), { metadata, status: { phase: "Failed" } }, signal);
    expect(undone).toBeLessThan(0);
  });
});

describe("pods in overflow mode that the host runs", () => {
  const LABEL = "/metadata/labels/legation.dev~1proxy";
  const overflow = (name: string) => ({
    metadata: { name, namespace: "shop", uid: `uid-${name}`, resourceVersion: "1", labels: { app: "web" } },
  });

  test("lose the mark alone, unless they have overflowed or vanished since they were read", async () => {
    const selectors: unknown[] = [];
    const patched: unknown[] = [];
    const items = ["stays", "overflowed", "gone", "denied"].map(overflow);
    const list = async (_resource: unknown, { labelSelector }: { labelSelector?: string } = {}) => {
      selectors.push(labelSelector);
      return { items, resourceVersion: "1", size: 0 };
    };
    const patch = async (_resource: unknown, { name }: { name: string }, { body }: object & { body: unknown }) => {
      patched.push([name, body]);
      if (name === "stays") return { metadata: {} };
      const code = name === "gone" ? "NotFound" : name === "denied" ? "ServerError" : "Unprocessable";
      throw kubeError(code, "no", { cluster: "host", verb: "patch", namespace: "shop", objectName: name });
    };
    const remained: string[] = [];
    const remains = (what: string): void => void remained.push(what);
    expect(await unmarkOverflow({ host: fakeClient({ list, patch }), signal, remains })).toBe(1);
    expect(remained).toEqual(["label legation.dev/proxy of pod shop/denied (no)"]);
    expect(selectors).toEqual(["legation.dev/proxy=overflow"]);
    expect(patched).toEqual(
      items.map(({ metadata: { name, uid } }) => [
        name,
        [
          { op: "test", path: "/metadata/uid", value: uid },
          { op: "test", path: LABEL, value: "overflow" },
          { op: "remove", path: LABEL },
        ],
      ]),
    );
  });
});
