import { Agent } from "node:https";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { parseLabelSelector } from "../../src/api/label-selector.ts";
import { apiRequest } from "../support/clusters/api-request.ts";
import { hostCluster } from "../support/harness/clusters.ts";

const piece = fc.constantFrom(
  ...["a", "b.c/d", "in", "notin", " in ", " notin ", "(", ")", ",", "=", "==", "!=", "!", ">", "<", " ", "\t"],
  ...["1", "-1", "+1", "x_y", "-", "A/b", "é", "9223372036854775807", "9223372036854775808"],
);

test("accepts exactly the label selectors that the API server accepts", async () => {
  const host = hostCluster();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
  await fc.assert(
    fc.asyncProperty(text, async (selector) => {
      const path = `/api/v1/namespaces/default/configmaps?limit=1&labelSelector=${encodeURIComponent(selector)}`;
      const { status } = await apiRequest(host, "GET", path, { agent });
      expect([200, 400]).toContain(status);
      expect(parseLabelSelector(selector).ok).toBe(status === 200);
    }),
    { numRuns: 500 },
  );
});
