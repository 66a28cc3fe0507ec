import { expect, test } from "vitest";
import { attributesOf } from "../../../src/kubelet/attributes.ts";

test.each<[string, string, string, string[]]>([
  ["GET", "/containerLogs/shop/web/main", "get", ["proxy"]],
  ["GET", "/metrics/resource", "get", ["metrics"]],
  ["GET", "/metrics", "get", ["metrics"]],
  ["GET", "/stats/summary", "get", ["stats"]],
  ["GET", "/logs/syslog", "get", ["log"]],
  ["GET", "/pods", "get", ["pods", "proxy"]],
  ["GET", "/healthz", "get", ["healthz", "proxy"]],
  ["GET", "/metricsx", "get", ["proxy"]],
  ["GET", "/", "get", ["proxy"]],
  ["POST", "/pods", "create", ["pods", "proxy"]],
  ["POST", "/exec/shop/web/main", "create", ["proxy"]],
  // A WebSocket opens by GET and may run commands.
  ["GET", "/exec/shop/web/main", "create", ["proxy"]],
  ["GET", "/attach/shop/web/main", "create", ["proxy"]],
  ["GET", "/portForward/shop/web", "create", ["proxy"]],
  // No verb of Kubernetes, so no right permits it.
  ["OPTIONS", "/pods", "", ["pods", "proxy"]],
])("requires for %s %s the verb %s on nodes/%s", (method, path, verb, subresources) => {
  expect(attributesOf(method, path)).toEqual({ verb, subresources });
});
