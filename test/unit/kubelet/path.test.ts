import { expect, test } from "vitest";
import { endpointOf, metricPathOf } from "../../../src/kubelet/path.ts";

const pod = { namespace: "shop", name: "web" };

test.each<[string, ReturnType<typeof endpointOf>]>([
  ["/healthz", { kind: "healthz" }],
  ["/pods", { kind: "pods" }],
  ["/pods/", { kind: "pods" }],
  ["/metrics", { kind: "metrics" }],
  ["/metrics/resource", { kind: "resource" }],
  ["/metrics/cadvisor", { kind: "cadvisor" }],
  ["/metrics/probes", { kind: "probes" }],
  ["/metrics/slis", { kind: "unknown" }],
  ["/stats/summary", { kind: "stats" }],
  ["/containerLogs/shop/web/main", { kind: "log", pod, container: "main" }],
  ["/containerLogs/shop/web", { kind: "unknown" }],
  ["/containerLogs/shop/web/main/more", { kind: "unknown" }],
  ["/exec/shop/web/main", { kind: "stream", pod, container: "main" }],
  ["/exec/shop/web/1-2-3/main", { kind: "stream", pod: { ...pod, uid: "1-2-3" }, container: "main" }],
  ["/attach/shop/web/main", { kind: "stream", pod, container: "main" }],
  ["/exec/shop/web", { kind: "unknown" }],
  ["/portForward/shop/web", { kind: "stream", pod }],
  ["/portForward/shop/web/1-2-3", { kind: "stream", pod: { ...pod, uid: "1-2-3" } }],
  // Rights depend on the first segment as it is written.
  ["/%65xec/shop/web/main", { kind: "unknown" }],
  ["//exec/shop/web/main", { kind: "unknown" }],
  ["/run/shop/web/main", { kind: "unknown" }],
  ["/", { kind: "unknown" }],
  // Names become parts of a path in the member.
  ["/containerLogs/shop/..%2f..%2fsecrets/main", { kind: "unknown" }],
  ["/containerLogs/../web/main", { kind: "unknown" }],
  ["/containerLogs/shop/%2e%2e/main", { kind: "unknown" }],
  ["/containerLogs/shop/web%/main", { kind: "unknown" }],
  ["/containerLogs//web/main", { kind: "unknown" }],
  ["/containerLogs/shop//main", { kind: "unknown" }],
  ["/containerLogs/shop/web/", { kind: "unknown" }],
])("reads the kind, pod and container of a kubelet's path: %s", (path, endpoint) => {
  expect(endpointOf(path)).toEqual(endpoint);
});

test.each([
  ["/pods", "pods"],
  ["/pods/", "pods"],
  ["/metrics", "metrics"],
  ["/metrics/resource", "metrics/resource"],
  ["/stats/summary", "stats"],
  ["/containerLogs/shop/web/main", "containerLogs"],
  ["/exec/shop/web/main", "exec"],
  // Any caller may request any path.
  ["/metrics/any", "other"],
  ["/any", "other"],
  ["/", "other"],
])("labels request metrics of %s with %s", (path, label) => {
  expect(metricPathOf(path)).toBe(label);
});
