import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../src/api/delegated-type.ts";
import type { FindType } from "../../../webhook/whole.ts";
import { mutateObject } from "../../../webhook/whole-objects.ts";
import { apply, type ReviewParts, request } from "./reviews.ts";

const WHOLE = { "legation.dev/whole": "true" };
const TYPE: DelegatedType = {
  metadata: { name: "services" },
  spec: { version: "v1", kind: "Service", plural: "services" },
};
const served: FindType = (group, kind) => (group === "" && kind === "Service" ? TYPE : "none");

/** A Service that asks for members, as admission has marked it if `isMarked`. */
function service(spec: object, { isMarked = false, ...more }: { isMarked?: boolean; [field: string]: unknown } = {}) {
  const marks = isMarked ? { labels: WHOLE, finalizers: ["legation.dev/whole"] } : {};
  return { metadata: { name: "web", annotations: WHOLE, ...marks, ...more }, spec };
}

/** Returns the Service after admission, or why it is refused. */
function admitted(parts: ReviewParts, namespace = "team"): unknown {
  const verdict = mutateObject({ ...request({ kind: "Service", ...parts }), namespace }, served);
  return verdict.kind === "denied" ? verdict.message : apply(parts.object, verdict);
}

const balanced = { type: "LoadBalancer" };
const kept = { type: "LoadBalancer", loadBalancerClass: "legation.dev/whole" };

describe("a Service with legation.dev/whole", () => {
  test.each<[string, object, object | undefined, object]>([
    ["is served by no load balancer of this cluster", balanced, undefined, kept],
    ["keeps the class when a client leaves it out", balanced, kept, kept],
    ["gets the class with the type", balanced, { type: "ClusterIP" }, kept],
    ["gets no class of another type", { type: "NodePort" }, undefined, { type: "NodePort" }],
    ["loses the class with the type by the API server", { type: "ClusterIP" }, kept, { type: "ClusterIP" }],
  ])("%s", (_, spec, before, expected) => {
    const oldObject = before === undefined ? null : service(before, { isMarked: true });
    const operation = before === undefined ? "CREATE" : "UPDATE";
    expect(admitted({ operation, object: service(spec), oldObject })).toMatchObject({
      metadata: { labels: WHOLE },
      spec: expected,
    });
    expect(admitted({ operation, object: service(spec), oldObject })).toHaveProperty("spec", expected);
  });

  test.each<[string, ReviewParts, string]>([
    [
      "whose class one of this cluster may serve",
      { object: service({ ...balanced, loadBalancerClass: "example.com/nlb" }) },
      '[{"patch": [{"op": "add", "path": "/spec/loadBalancerClass", "value": "example.com/nlb"}]}]',
    ],
    [
      "that one of this cluster may serve already",
      { operation: "UPDATE", object: service(balanced), oldObject: { metadata: { name: "web" }, spec: balanced } },
      "set spec.type to ClusterIP first, or delete the Service and create it anew",
    ],
    [
      "that gets another class",
      {
        operation: "UPDATE",
        object: service({ ...balanced, loadBalancerClass: "example.com/nlb" }),
        oldObject: service({ type: "ClusterIP" }, { isMarked: true }),
      },
      "may serve spec.loadBalancerClass example.com/nlb",
    ],
    [
      "that selects a label of proxies",
      { object: service({ selector: { app: "web", "legation.dev/proxy": "true" } }) },
      "remove it from spec.selector",
    ],
    ["that takes traffic of others", { object: service({ externalIPs: ["192.0.2.1"] }) }, "remove the field"],
    [
      "that takes traffic of others in a member",
      {
        object: service(
          {},
          {
            annotations: {
              ...WHOLE,
              "legation.dev/overrides": '[{"patch": [{"op": "add", "path": "/spec/externalIPs", "value": []}]}]',
            },
          },
        ),
      },
      "members get no externalIPs",
    ],
    [
      "that was imported",
      { object: service({}, { labels: { "multicluster.kubernetes.io/service-name": "web" } }) },
      "its own imports",
    ],
    [
      "that is taken back with its class",
      {
        operation: "UPDATE",
        object: { ...service(kept, { isMarked: true, annotations: {} }) },
        oldObject: service(kept, { isMarked: true }),
      },
      "never changes; set spec.type to ClusterIP first, or delete the Service",
    ],
  ])("is refused if it is one %s", (_, parts, message) => {
    expect(admitted(parts)).toContain(message);
  });

  test("is refused for the API server's own", () => {
    const kubernetes = service({}, { name: "kubernetes" });
    expect(admitted({ object: kubernetes }, "default")).toContain("each cluster has its own");
    expect(admitted({ object: kubernetes })).toHaveProperty("metadata.labels", WHOLE);
  });

  test("may be given fields per member that its cluster would allocate", () => {
    const overridden = (path: string, op = "add") =>
      service(
        { type: "NodePort", clusterIP: "10.0.0.1", ports: [{ port: 80, nodePort: 30_080 }] },
        {
          annotations: {
            ...WHOLE,
            "legation.dev/overrides": JSON.stringify([{ clusters: ["west"], patch: [{ op, path, value: 30_999 }] }]),
          },
        },
      );
    expect(admitted({ object: overridden("/spec/ports/0/nodePort") })).toHaveProperty("metadata.labels", WHOLE);
    // The field is not there when the override is applied.
    expect(admitted({ object: overridden("/spec/clusterIP", "replace") })).toContain("has nothing there");
  });
});
