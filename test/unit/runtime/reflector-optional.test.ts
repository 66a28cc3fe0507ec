import { afterEach, beforeEach, expect, test } from "vitest";
import { type KubeObject, objectKey } from "../../../src/api/kubernetes.ts";
import type { RawRequest, WatchOptions } from "../../../src/kube/client.ts";
import { apiVersionOf, type OptionalResource, type Resource } from "../../../src/kube/resources.ts";
import { Reflector, type ReflectorState } from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { serving } from "../../support/builders/discovery.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const widgets: OptionalResource<KubeObject> = {
  group: "example.com",
  versions: ["v1", "v1beta1"],
  plural: "widgets",
  kind: "Widget",
  namespaced: true,
};
const MINUTE_MS = 60_000;
const key = objectKey({ namespace: "team", name: "a" });

let clock: FakeClock;
let reflector: Reflector<KubeObject>;
let states: ReflectorState[];
let events: string[];
let serve: (...versions: readonly string[]) => void;
let reflectorOf: (resource: OptionalResource<KubeObject>) => Reflector<KubeObject>;

/** A cluster with one widget, which is in each version that is served. Its watches end when the versions change. */
beforeEach(() => {
  clock = new FakeClock();
  states = [];
  events = [];
  let served: readonly string[] = [];
  let raw = serving();
  let endWatches = (): void => {};
  serve = (...versions) => {
    served = versions;
    raw = serving({
      group: "example.com",
      versions: Object.fromEntries(versions.map((version) => [version, ["widgets"]])),
    });
    endWatches();
    endWatches = () => {};
  };
  const demand = ({ version }: Resource<KubeObject>): void => {
    if (served.includes(version)) return;
    throw kubeError("NotFound", "404", { cluster: "fake", verb: "list", resource: "widgets" });
  };
  const client = fakeClient({
    raw: (request: RawRequest) => raw(request),
    list: async (resource: Resource<KubeObject>) => {
      demand(resource);
      const metadata = { namespace: "team", name: "a", uid: "uid", resourceVersion: "1" };
      return { items: [{ apiVersion: apiVersionOf(resource), metadata }], resourceVersion: "1", size: 1 };
    },
    watch: async function* (resource: Resource<KubeObject>, { signal, onOpen }: WatchOptions) {
      demand(resource);
      onOpen?.();
      await new Promise<void>((resolve) => {
        const earlier = endWatches;
        endWatches = () => {
          earlier();
          resolve();
        };
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    },
  });
  reflectorOf = (resource) =>
    new Reflector<KubeObject>({
      client,
      resource,
      clock,
      log: createLogger({ level: "silent" }),
      onEvent: ({ type, object }) => events.push(`${type} ${object.apiVersion}`),
      onState: (state) => states.push(state),
    });
  reflector = reflectorOf(widgets);
});
afterEach(() => reflector.stop());

const version = (): string | undefined => reflector.store.get(key)?.apiVersion;

test("shows no objects of an API that the cluster lacks, and finds the API within a minute", async () => {
  reflector.start();
  await clock.advance(10);
  expect([reflector.state, reflector.store.synced, reflector.store.size]).toEqual(["not-served", true, 0]);
  serve("v1beta1");
  await clock.advance(MINUTE_MS);
  expect([reflector.state, version()]).toEqual(["watching", "example.com/v1beta1"]);
  expect(events).toEqual(["added example.com/v1beta1"]);
});

test("looks for an API that the cluster lacks as often as the resource says", async () => {
  await reflector.stop();
  reflector = reflectorOf({ ...widgets, lookAgainMs: 10_000 });
  reflector.start();
  await clock.advance(10);
  serve("v1");
  await clock.advance(9_000);
  expect(reflector.state).toBe("not-served");
  await clock.advance(1_000);
  expect(reflector.state).toBe("watching");
});

test("keeps its version while it is served, although another is preferred", async () => {
  serve("v1beta1");
  reflector.start();
  await clock.advance(MINUTE_MS);
  serve("v1", "v1beta1");
  await clock.advance(MINUTE_MS);
  expect([reflector.state, version()]).toEqual(["watching", "example.com/v1beta1"]);
});

test("lists again in the version that replaced its own", async () => {
  serve("v1beta1");
  reflector.start();
  await clock.advance(MINUTE_MS);
  serve("v1");
  await clock.advance(MINUTE_MS);
  expect([reflector.state, version()]).toEqual(["watching", "example.com/v1"]);
  expect(events).toEqual(["added example.com/v1beta1", "updated example.com/v1"]);
});

test("drops the objects of a removed API", async () => {
  serve("v1");
  reflector.start();
  await clock.advance(MINUTE_MS);
  serve();
  await clock.advance(MINUTE_MS);
  expect([reflector.state, reflector.failing, reflector.store.size]).toEqual(["not-served", undefined, 0]);
  expect(events).toEqual(["added example.com/v1", "deleted example.com/v1"]);
});
