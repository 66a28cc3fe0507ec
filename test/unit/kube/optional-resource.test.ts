import { describe, expect, test } from "vitest";
import type { RawRequest } from "../../../src/kube/client.ts";
import { resourceOf, ServedResource } from "../../../src/kube/optional-resource.ts";
import type { OptionalResource } from "../../../src/kube/resources.ts";
import { serving } from "../../support/builders/discovery.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

const widgets: OptionalResource<object> = {
  group: "example.com",
  versions: ["v1", "v1beta1"],
  plural: "widgets",
  kind: "Widget",
  namespaced: true,
};
const signal = new AbortController().signal;
const notFound = kubeError("NotFound", "gone", { cluster: "fake", verb: "list", resource: "widgets" });

describe("of an optional resource is used", () => {
  test.each<[string, Record<string, readonly string[]>, string | undefined]>([
    ["the only version that is served", { v1beta1: ["widgets"] }, "v1beta1"],
    ["the version that the API server prefers", { v1beta1: ["widgets"], v1: ["widgets"] }, "v1beta1"],
    ["the next version, if the preferred one is not understood", { v2: ["widgets"], v1: ["widgets"] }, "v1"],
    ["the next version, if the preferred one lacks the resource", { v1: ["gadgets"], v1beta1: ["widgets"] }, "v1beta1"],
    ["none, if no version is understood", { v2: ["widgets"] }, undefined],
    ["none, if the group lacks the resource", { v1: ["gadgets"] }, undefined],
  ])("%s", async (_, versions, expected) => {
    const client = fakeClient({ raw: serving({ group: "example.com", versions }) });
    expect((await new ServedResource(client, widgets).find(signal))?.version).toBe(expected);
  });

  test("none, if the cluster lacks the group", async () => {
    expect(await new ServedResource(fakeClient({ raw: serving() }), widgets).find(signal)).toBeUndefined();
  });
});

test("rejects when a proxy answers discovery, which proves no absence", async () => {
  const client = fakeClient({ raw: async () => ({ kind: "Status" }) });
  await expect(new ServedResource(client, widgets).find(signal)).rejects.toMatchObject({ code: "BadAnswer" });
});

/** A cluster that serves widgets in versions that a test changes, and the discovery requests it got. */
function changing(version: string) {
  let raw = serving({ group: "example.com", versions: { [version]: ["widgets"] } });
  const asked: string[] = [];
  const client = fakeClient({
    raw: (request: RawRequest) => {
      asked.push(request.path);
      return raw(request);
    },
  });
  const serve = (...versions: readonly string[]): void => {
    raw = serving({
      group: "example.com",
      versions: Object.fromEntries(versions.map((one) => [one, ["widgets"]])),
    });
  };
  return { served: new ServedResource(client, widgets), asked, serve };
}

describe("a discovered version", () => {
  test("is not looked up again while requests succeed", async () => {
    const { served, asked } = changing("v1");
    for (let call = 0; call < 3; call += 1) await served.use(async () => "done", signal);
    expect(asked).toEqual(["/apis", "/apis/example.com/v1"]);
  });

  test.each([
    ["another", ["v1"], "v1"],
    ["none", [], undefined],
  ])("gives way to %s once the API server no longer knows it", async (_, versions, expected) => {
    const { served, serve } = changing("v1beta1");
    await served.find(signal);
    serve(...versions);
    const answer = await served.use(async ({ version }) => {
      if (version === "v1beta1") throw notFound;
      return version;
    }, signal);
    expect(answer).toBe(expected);
  });

  test("stays when only the object was not found", async () => {
    const { served, asked } = changing("v1");
    const request = (): Promise<never> => Promise.reject(notFound);
    await expect(served.use(request, signal)).rejects.toBe(notFound);
    expect(asked.filter((path) => path === "/apis")).toHaveLength(2);
  });

  test("stays after any other error", async () => {
    const { served, asked } = changing("v1");
    const conflict = kubeError("Conflict", "no", { cluster: "fake", resource: "widgets" });
    await expect(served.use(() => Promise.reject(conflict), signal)).rejects.toBe(conflict);
    expect(asked.filter((path) => path === "/apis")).toHaveLength(1);
  });
});

test.each([
  ["example.com/v1beta1", "v1beta1"],
  [undefined, "v1"],
])("writes an object of apiVersion %s in version %s", (apiVersion, version) => {
  const object = apiVersion === undefined ? {} : { apiVersion };
  expect(resourceOf(widgets, object).version).toBe(version);
});
