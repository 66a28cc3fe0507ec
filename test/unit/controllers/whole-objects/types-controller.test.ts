import { expect, onTestFinished, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { TypesController } from "../../../../src/controllers/whole-objects/types-controller.ts";
import type { WatchOptions } from "../../../../src/kube/client.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

const spec = { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" };

function type(uid: string, metadata: object = {}): Stored<DelegatedType> {
  const finalizers = ["legation.dev/delegated-type"];
  return { metadata: { name: "widgets.example.com", uid, resourceVersion: uid, finalizers, ...metadata }, spec };
}

const widget: Stored<AnyObject> = {
  metadata: {
    name: "one",
    namespace: "team",
    uid: "u1",
    resourceVersion: "1",
    labels: { "legation.dev/whole": "true" },
  },
};

test("follows the objects of a type that was deleted and created anew while the watch was cut", async () => {
  const clock = new FakeClock();
  let types: readonly KubeObject[] = [type("1", { deletionTimestamp: "2026-01-01T00:00:00Z" })];
  const cut = Promise.withResolvers<never>();
  const patched: string[] = [];
  const host = quietClient([], {
    list: (async ({ plural }: Resource<KubeObject>) => ({
      items: plural === "delegatedtypes" ? types : [widget],
      resourceVersion: "1",
      size: 0,
    })) as never,
    watch: async function* ({ plural }: Resource<KubeObject>, { signal, onOpen }: WatchOptions) {
      onOpen?.();
      const ended = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await (plural === "delegatedtypes" ? Promise.race([ended, cut.promise]) : ended);
    } as never,
    patch: (async ({ plural }: Resource<KubeObject>, _ref: object, { body }: { body: object }) => {
      patched.push(`${plural} ${JSON.stringify(body)}`);
      return { metadata: { resourceVersion: "2" } };
    }) as never,
  });
  const controller = new TypesController({
    ...(surroundings([], clock) as object),
    host,
    rules: { parse: () => ({ ok: true, placement: {} }), namespaceLabels: () => ({}) },
    restoredHost: {},
  } as never);
  onTestFinished(() => controller.stop());
  controller.start();
  await clock.advance(1_000);
  expect(patched.join()).not.toContain("widgets {");
  types = [type("2")];
  cut.reject(kubeError("Gone", "too old", { verb: "watch", resource: "delegatedtypes" }));
  await clock.advance(60_000);
  expect(patched.join()).toContain('widgets {"metadata":{"resourceVersion":"1","finalizers":["legation.dev/whole"]}}');
});
