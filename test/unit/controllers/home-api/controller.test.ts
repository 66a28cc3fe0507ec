import { Writable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { ApiServer } from "../../../support/api-server/api-server.ts";
import { clientOf } from "../../../support/api-server/client.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { homeApiOf, memberWith, podWithTokens } from "./with-tokens.ts";

const HOST = { id: "host-id", name: "cern" };
const MINUTE = 60_000;

/** Returns a controller for a delegate in `west` that mounts tokens of an hour, from `issue`. */
async function controllerWith(
  clock: FakeClock,
  issue: () => void,
): Promise<{ readonly told: string[]; readonly logged: string[] }> {
  const { proxy, delegate } = podWithTokens(HOST);
  const west = memberWith(delegate, clientOf(new ApiServer()));
  const told: string[] = [];
  const logged: string[] = [];
  const destination = new Writable({
    write: (chunk, _encoding, done) => {
      logged.push(String(chunk));
      done();
    },
  });
  const events = new Events<ControllerEvents>();
  const controller = homeApiOf({
    events,
    host: {
      ...clientOf(new ApiServer("host")),
      createSubresource: async () => {
        issue();
        const expirationTimestamp = new Date(clock.wall() + 60 * MINUTE).toISOString();
        return { spec: { expirationSeconds: 3600 }, status: { token: "t", expirationTimestamp } };
      },
    },
    identity: HOST,
    west,
    proxy,
    tell: ({ message }) => told.push(message),
    clock,
    log: createLogger({ level: "warn", destination }),
  });
  onTestFinished(() => controller.stop());
  events.emit("cluster", "west");
  const started = controller.start(new AbortController().signal);
  await clock.advance(MINUTE / 2);
  await started;
  events.emit("bound", "west", objectKey(proxy.metadata));
  await clock.advance(1_000);
  return { told, logged };
}

test("replaces tokens that expired while the machine was suspended soon after, though no timer is due", async () => {
  const clock = new FakeClock();
  let issued = 0;
  await controllerWith(clock, () => {
    issued += 1;
  });
  await clock.advance(10 * MINUTE);
  expect(issued).toBe(1);

  clock.jump(55 * MINUTE);
  await clock.advance(MINUTE);
  expect(issued).toBe(2);
  await clock.advance(30 * MINUTE);
  expect(issued).toBe(2);
});

test("reports a token that is refused repeatedly once, in the log and on the pod", async () => {
  const clock = new FakeClock();
  let attempts = 0;
  const { told, logged } = await controllerWith(clock, () => {
    attempts += 1;
    throw kubeError("Forbidden", "no more of them", { cluster: "host", resource: "serviceaccounts/token" });
  });
  await clock.advance(10 * MINUTE);
  expect(attempts).toBeGreaterThan(10);
  expect(told).toEqual([expect.stringContaining("no more of them")]);
  expect(logged).toEqual([expect.stringContaining("no more of them")]);
});
