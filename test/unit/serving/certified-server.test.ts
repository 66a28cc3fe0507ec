import { createServer } from "node:http";
import { expect, test } from "vitest";
import { timeouts } from "../../../src/serving/certified-server.ts";

test("bounds the time for the headers of a request, also where its body may take any time", () => {
  const server = createServer(timeouts(0));
  expect(server.requestTimeout).toBe(0);
  // Unused connections count, too, which Go clients keep for 90 s.
  expect(server.headersTimeout).toBeGreaterThan(90_000);
  server.close();
});
