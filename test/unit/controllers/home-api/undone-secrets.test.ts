import { expect, test } from "vitest";
import { RENEW_AT_ANNOTATION } from "../../../../src/api/keys.ts";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { secrets } from "../../../../src/kube/resources.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { ApiServer } from "../../../support/api-server/api-server.ts";
import { clientOf } from "../../../support/api-server/client.ts";
import type { StoredObject } from "../../../support/api-server/object-store.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { homeApiOf, memberWith, podWithTokens } from "./with-tokens.ts";

const HOST = { id: "host-id", name: "cern" };
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

type Undo = (secret: StoredObject) => StoredObject | undefined;

/** The Secrets of a member in which another client answers each write. */
class MemberSecrets {
  undo: Undo;
  readonly #server = new ApiServer("west");
  readonly client: ClusterClient = clientOf(this.#server);

  constructor(undo: Undo) {
    this.undo = undo;
    this.#server.onWrite = () => this.change(this.undo);
  }

  get secret(): StoredObject | undefined {
    return this.#server.all(secrets)[0];
  }

  /** Applies a change of the other client once. */
  change(change: Undo): void {
    const { secret } = this;
    const left = secret && change(secret);
    if (left !== undefined) this.#server.put(secrets, left);
    else if (secret !== undefined) this.#server.drop(secrets, secret.metadata);
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
    host: fakeClient({ createSubresource }),
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
