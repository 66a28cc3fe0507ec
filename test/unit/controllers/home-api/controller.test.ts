import { Writable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { objectKey, type Secret, type Stored } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import type { ClusterClient, WatchOptions } from "../../../../src/kube/client.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../../cli/client.ts";
import { homeApiOf, memberWith, podWithTokens } from "./with-tokens.ts";

const HOST = { id: "host-id", name: "cern" };
const MINUTE = 60_000;

/** Returns a member's API server that keeps one Secret, with a watch. */
function keeper(): ClusterClient {
  let kept: Stored<Secret> | undefined;
  let tell: () => void = () => {};
  const keep = (secret: Secret): void => {
    const version = String(Number(kept?.metadata.resourceVersion ?? 1) + 1);
    kept = { metadata: { name: "", ...secret.metadata, uid: "secret-uid", resourceVersion: version } };
    tell();
  };
  return fakeClient({
    list: (async () => ({ items: [], resourceVersion: "1", size: 0 })) as never,
    watch: async function* (_resource: unknown, { signal, onOpen }: WatchOptions) {
      onOpen?.();
      signal.addEventListener("abort", () => tell(), { once: true });
      while (!signal.aborted) {
        await new Promise<void>((resolve) => {
          tell = resolve;
        });
        if (kept !== undefined) yield { type: "MODIFIED", object: structuredClone(kept), size: 1 };
      }
    } as never,
    create: (async (_resource: unknown, secret: Secret) => keep(secret)) as never,
    patch: (async (_resource: unknown, ref: object, { body }: { body: Secret }) =>
      keep({ ...body, metadata: { ...body.metadata, ...ref } })) as never,
  });
}

/** Returns a controller for a delegate in `west` that mounts tokens of an hour, from `issue`. */
async function controllerWith(
  clock: FakeClock,
  issue: () => void,
): Promise<{ readonly told: string[]; readonly logged: string[] }> {
  const { proxy, delegate } = podWithTokens(HOST);
  const west = memberWith(delegate, keeper());
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
      ...keeper(),
      createSubresource: (async () => {
        issue();
        const expirationTimestamp = new Date(clock.wall() + 60 * MINUTE).toISOString();
        return { spec: { expirationSeconds: 3600 }, status: { token: "t", expirationTimestamp } };
      }) as never,
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
