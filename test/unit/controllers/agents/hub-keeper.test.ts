import { X509Certificate } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import { WayPending } from "../../../../src/kube/errors.ts";
import type { Hub } from "../../../../src/tunnel/hub.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { clusterNamed, controllerOf, DAY_MS } from "./agents-scene.ts";

describe("the hub's endpoint", () => {
  test("is published a second after the first attempt has failed", async () => {
    let failures = 1;
    const { controller, clock, endpoints } = await controllerOf([], {
      patch: async () => {
        if (failures-- > 0) throw kubeError("ServerError");
      },
    });
    await controller.start();
    expect(endpoints).toEqual([]);
    await clock.advance(1_000);
    await vi.waitFor(() => expect(endpoints).toEqual(["legation-hub"]), { timeout: 10_000 });
  });

  test("is written again each minute, since it may be deleted or another's, until the controller stops", async () => {
    const { controller, clock, endpoints } = await controllerOf([]);
    await controller.start();
    expect(endpoints).toHaveLength(1);
    await clock.advance(60_000);
    await vi.waitFor(() => expect(endpoints).toHaveLength(2), { timeout: 10_000 });
    await controller.stop();
    await clock.advance(300_000);
    expect(endpoints).toHaveLength(2);
  });
});

test("the hub's certificate that was issued by a clock far ahead is replaced once the clock is set back", async () => {
  const { controller, clock, served } = await controllerOf([clusterNamed("west")]);
  clock.jump(40 * DAY_MS);
  await controller.start();
  clock.jump(-40 * DAY_MS);
  await clock.advance(30_000);
  await vi.waitFor(() => expect(served).toHaveLength(2), { timeout: 10_000 });
  const startsAt = served.map((cert) => new X509Certificate(cert).validFromDate.getTime());
  expect(startsAt[0]).toBeGreaterThan(clock.wall());
  expect(startsAt[1]).toBeLessThan(clock.wall());
});

describe("a hub that cannot serve", () => {
  test("stops nothing else, says why, and is opened a second later", async () => {
    let taken = true;
    const open = async (hub: Hub): Promise<Hub> => {
      if (taken) throw new Error("listen EADDRINUSE: address already in use :::8132");
      return hub;
    };
    const { controller, clock, endpoints } = await controllerOf([clusterNamed("west")], { open });
    await controller.start();
    const dialled = controller.connectionOf("west").dial(AbortSignal.timeout(1_000));
    await expect(dialled).rejects.toThrow("the hub does not serve: listen EADDRINUSE");
    taken = false;
    await clock.advance(1_000);
    await vi.waitFor(() => expect(endpoints).toEqual(["legation-hub"]), { timeout: 10_000 });
  });

  test("is waited for by those who ask before it was opened", async () => {
    const dial = (): Promise<never> => Promise.reject(new Error("asked the hub"));
    const open = async (hub: Hub): Promise<Hub> => Object.assign(hub, { dial });
    const { controller } = await controllerOf([clusterNamed("west")], { open });
    const dialled = controller.connectionOf("west").dial(new AbortController().signal);
    const rejected = expect(dialled).rejects.toThrow("asked the hub");
    await controller.start();
    await rejected;
  });

  test.each([
    ["no longer than the caller does", () => AbortSignal.timeout(20)],
    ["a little, so that a probe learns why there is no connection", () => new AbortController().signal],
  ])("is waited for %s", async (_, signal) => {
    const { controller } = await controllerOf([clusterNamed("west")]);
    const dialled = controller.connectionOf("west").dial(signal());
    await expect(dialled).rejects.toEqual(new WayPending("this controller has not opened its hub yet"));
  });

  test("is there for those who ask while its endpoint is being published", async () => {
    const dial = (_: string, { aborted }: AbortSignal): Promise<never> =>
      Promise.reject(new Error(aborted ? "asked too late" : "asked the hub"));
    const open = async (hub: Hub): Promise<Hub> => Object.assign(hub, { dial });
    const { controller } = await controllerOf([clusterNamed("west")], { open, patch: () => new Promise(() => {}) });
    void controller.start();
    const dialled = controller.connectionOf("west").dial(AbortSignal.timeout(1_000));
    await expect(dialled).rejects.toThrow("asked the hub");
  });

  test("is closed when the controller was stopped while it was opened", async () => {
    const opening = Promise.withResolvers<void>();
    const opened = Promise.withResolvers<void>();
    const open = async (hub: Hub): Promise<Hub> => {
      opening.resolve();
      await opened.promise;
      return hub;
    };
    const { controller, closed } = await controllerOf([clusterNamed("west")], { open });
    const starting = controller.start();
    await opening.promise;
    await controller.stop();
    opened.resolve();
    await starting;
    expect(closed.count).toBe(1);
  });
});
