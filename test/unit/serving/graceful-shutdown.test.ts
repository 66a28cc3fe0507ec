import type { LightMyRequestResponse } from "fastify";
import { expect, test } from "vitest";
import { issueAuthority } from "../../../src/certificates/issue.ts";
import { GracefulShutdown } from "../../../src/serving/graceful-shutdown.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { createWebhookServer } from "../../../webhook/server.ts";
import { pod } from "../../support/builders/pod.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { review } from "../webhook/reviews.ts";

/** A shutdown that has begun, and whether it is over. */
function begun(shutdown: GracefulShutdown): { readonly over: () => boolean } {
  let over = false;
  void shutdown.begin().then(() => {
    over = true;
  });
  return { over: () => over };
}

test("ends at once without reviews", async () => {
  const clock = new FakeClock();
  const shutdown = new GracefulShutdown(clock);
  shutdown.requested();
  await clock.advance(600);
  const { over } = begun(shutdown);
  await clock.advance(0);
  expect(over()).toBe(true);
});

test("stays until no review came for a moment", async () => {
  const clock = new FakeClock();
  const shutdown = new GracefulShutdown(clock);
  shutdown.requested();
  const { over } = begun(shutdown);
  for (let time = 0; time < 2_000; time += 100) {
    shutdown.requested();
    await clock.advance(100);
    expect(over()).toBe(false);
  }
  await clock.advance(600);
  expect(over()).toBe(true);
});

test("ends although callers do not stop", async () => {
  const clock = new FakeClock();
  const shutdown = new GracefulShutdown(clock);
  const { over } = begun(shutdown);
  shutdown.requested();
  for (let time = 0; time < 6_000; time += 100) {
    shutdown.requested();
    await clock.advance(100);
  }
  expect(over()).toBe(true);
});

test("answers during shutdown, asks to close connections, and is not ready", async () => {
  const clock = new FakeClock();
  const shutdown = new GracefulShutdown(clock);
  const certificate = await issueAuthority("test", { now: Date.now(), lifetimeMs: 3_600_000 });
  const log = createLogger({ level: "silent" });
  const server = createWebhookServer({ certificate, notReady: () => undefined, shutdown, log });
  const ask = async (): Promise<LightMyRequestResponse> =>
    await server.inject({ method: "POST", url: "/mutate/all", payload: review({ object: pod() }) });
  expect((await ask()).headers.connection).not.toBe("close");
  void shutdown.begin();
  const answer = await ask();
  expect(answer.statusCode).toBe(200);
  expect(answer.headers.connection).toBe("close");
  expect((await server.inject("/readyz")).statusCode).toBe(503);
  await server.close();
});
