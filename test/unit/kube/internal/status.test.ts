import { expect, test } from "vitest";
import { errorFromAnswer } from "../../../../src/kube/internal/status.ts";
import { processorMs } from "../../../support/harness/processor-time.ts";

const subject = { cluster: "west", verb: "get", resource: "/readyz" };

function detailOf(text: string): string {
  return errorFromAnswer({ status: 500, headers: {}, text }, "/readyz", subject).detail;
}

const passed = Array.from({ length: 40 }, (_, index) => `[+]poststarthook/start-something-${index} ok`);

test("quotes only the failed checks of /readyz", () => {
  const failed = ["[-]etcd failed: reason withheld", "[-]informer-sync failed: 1 informers not started yet"];
  const text = [...passed, ...failed, "readyz check failed", ""].join("\n");
  expect(detailOf(text)).toBe(`HTTP 500: ${failed.join(", ")}`);
});

test("quotes the beginning of other text, without control characters", () => {
  expect(detailOf("<html>\u001b[2Jno backend</html>\n")).toBe("HTTP 500: <html>[2Jno backend</html>");
  expect(detailOf("x".repeat(1000))).toBe(`HTTP 500: ${"x".repeat(300)}`);
  expect(detailOf(passed.join("\n"))).toContain("start-something-0 ok");
  expect(detailOf(" \n")).toBe("HTTP 500");
});

test("reads only the beginning of an error of 48 MB", () => {
  const text = Buffer.alloc(48 * 1024 * 1024, "\n").toString("latin1");
  const took = processorMs(() => expect(detailOf(text)).toBe("HTTP 500"));
  expect(took).toBeLessThan(600);
});

test("keeps the kind, and the parts of each cause, of a Status", () => {
  const causes = [{ reason: "NamespaceTerminating", message: "it ends" }, { field: "spec.x" }, "broken"];
  const status = { kind: "Status", code: 403, message: "no", details: { kind: "pods", name: "web", causes } };
  const error = (body: object) =>
    errorFromAnswer({ status: 403, headers: {}, text: JSON.stringify(body) }, "/api/v1/pods", subject);
  expect(error(status).details).toEqual({
    kind: "pods",
    causes: [{ type: "NamespaceTerminating", message: "it ends" }, { field: "spec.x" }],
  });
  expect(error({ ...status, details: "none" }).details).toBeUndefined();
  const many = error({ ...status, details: { causes: Array(1_001).fill({ field: "spec.x" }) } }).details;
  expect([many?.causes.length, many?.isCut]).toEqual([1_000, true]);
});
