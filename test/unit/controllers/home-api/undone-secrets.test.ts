import { expect, test } from "vitest";
import { RENEW_AT_ANNOTATION } from "../../../../src/api/keys.ts";
import { objectKey, type Secret, type Stored } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import type { WatchOptions } from "../../../../src/kube/client.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../../cli/client.ts";
import { homeApiOf, memberWith, podWithTokens } from "./with-tokens.ts";

const HOST = { id: "host-id", name: "cern" };
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

type Undo = (secret: Stored<Secret>) => Stored<Secret> | undefined;

/** The Secrets of a member in which another client answers each write. */
class MemberSecrets {
  undo: Undo;
  #secret: Stored<Secret> | undefined;
  #version = 1;
  #tell: () => void = () => {};

  constructor(undo: Undo) {
    this.undo = undo;
  }

  get secret(): Stored<Secret> | undefined {
    return this.#secret;
  }

  readonly client = fakeClient({
    list: (async () => ({
      items: this.#secret === undefined ? [] : [this.#secret],
      resourceVersion: "1",
      size: 0,
    })) as never,
    create: (async (_resource: object, secret: Secret) => {
      if (this.#secret !== undefined) throw kubeError("AlreadyExists", "it is there", { resource: "secrets" });
      this.#write({ ...secret, metadata: { name: "s", ...secret.metadata, uid: "secret-uid", resourceVersion: "0" } });
    }) as never,
    patch: (async (_resource: object, _ref: object, { body }: { readonly body: Secret }) => {
      if (this.#secret !== undefined)
        this.#write({ ...this.#secret, metadata: { ...this.#secret.metadata, ...body.metadata } });
    }) as never,
    watch: this.#watch.bind(this) as never,
  });

  /** Applies a change of the other client once. */
  change(change: Undo): void {
    this.#version += 2;
    const left = this.#secret && change(this.#secret);
    this.#secret = left && { ...left, metadata: { ...left.metadata, resourceVersion: String(this.#version) } };
    this.#tell();
  }

  #write(secret: Stored<Secret>): void {
    this.#secret = secret;
    this.change(this.undo);
  }

  async *#watch(_resource: object, { signal, onOpen }: WatchOptions): AsyncGenerator<object> {
    onOpen?.();
    let shown: Stored<Secret> | undefined;
    while (!signal.aborted) {
      const now = this.#secret?.metadata.labels === undefined ? undefined : this.#secret;
      if (now !== undefined) yield { type: shown === undefined ? "ADDED" : "MODIFIED", object: now, size: 100 };
      else if (shown !== undefined) yield { type: "DELETED", object: shown, size: 100 };
      shown = now;
      await new Promise<void>((resolve) => {
        this.#tell = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }
}

/** Returns a controller of a pod's tokens, and counts their requests. */
async function controlled(undo: Undo) {
  const clock = new FakeClock();
  const { proxy, delegate } = podWithTokens(HOST);
  const there = new MemberSecrets(undo);
  const west = memberWith(delegate, there.client);
  const told: string[] = [];
  const issued = { count: 0 };
  const createSubresource = async () => {
    issued.count += 1;
    const expirationTimestamp = new Date(clock.wall() + HOUR).toISOString();
    return { spec: { expirationSeconds: 3600 }, status: { token: "t", expirationTimestamp } };
  };
  const events = new Events<ControllerEvents>();
  const controller = homeApiOf({
    events,
    host: fakeClient({ createSubresource: createSubresource as never }),
    identity: HOST,
    west,
    proxy,
    tell: ({ reason, message }) => told.push(`${reason}: ${message}`),
    clock,
    log: createLogger({ level: "silent" }),
  });
  events.emit("cluster", "west");
  await clock.advance(0);
  events.emit("bound", "west", objectKey(proxy.metadata));
  return { controller, clock, issued, told, there };
}

function withRenewal(at: string): Undo {
  return ({ metadata, ...secret }) => ({
    ...secret,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [RENEW_AT_ANNOTATION]: at } },
  });
}

test.each<[string, Undo]>([
  ["writes a past time", withRenewal("2020-01-01T00:00:00Z")],
  ["removes the annotations", ({ metadata: { annotations: _, ...metadata }, ...secret }) => ({ ...secret, metadata })],
  ["takes the labels off", ({ metadata: { labels: _, ...metadata }, ...secret }) => ({ ...secret, metadata })],
  ["deletes it", () => undefined],
])("issues five tokens in ten minutes, and reports it, if a client %s after each write", async (_, undo) => {
  const { controller, clock, issued, told, there } = await controlled(undo);
  for (let at = 0; at < 9 * MINUTE; at += 1000) await clock.advance(1000);
  expect(issued.count).toBe(5);
  expect(told).toEqual([
    expect.stringMatching(
      /^NoToken: another client in west keeps changing or deleting Secret legation-api-uid-1, .* left so for ten minutes/,
    ),
  ]);
  there.undo = (secret) => secret;
  for (let at = 0; at < 3 * MINUTE; at += 1000) await clock.advance(1000);
  expect(issued.count).toBe(6);
  expect(there.secret?.metadata.labels).toBeDefined();
  await controller.stop();
});

test("issues a new token each time a past time is written now and then", async () => {
  const { controller, clock, issued, told, there } = await controlled((secret) => secret);
  for (let time = 1; time <= 10; time += 1) {
    await clock.advance(15_001);
    expect(issued.count).toBe(time);
    there.change(withRenewal("2020-01-01T00:00:00Z"));
  }
  expect(told).toEqual([]);
  await controller.stop();
});
