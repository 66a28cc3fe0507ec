import { describe, expect, test, vi } from "vitest";
import { onAbort, unlessAborted } from "../../../src/kube/abort.ts";

describe("callbacks of one signal", () => {
  test("are called once each when it fires, by a single listener, and not those that were removed", () => {
    const { signal } = new AbortController();
    const controller = new AbortController();
    const added = vi.spyOn(controller.signal, "addEventListener");
    const called: string[] = [];
    onAbort(controller.signal, () => called.push("one"));
    const remove = onAbort(controller.signal, () => called.push("two"));
    onAbort(signal, () => called.push("of another signal"));
    remove();
    controller.abort();
    expect([called, added.mock.calls.length]).toEqual([["one"], 1]);
  });

  test("are ignored after it has fired, and without one", () => {
    const callback = vi.fn();
    onAbort(AbortSignal.abort(), callback)();
    onAbort(undefined, callback)();
    expect(callback).not.toHaveBeenCalled();
  });
});

describe("waiting unless a signal fires", () => {
  test("ends as the answer does, and leaves no listener behind", async () => {
    const { signal } = new AbortController();
    const removed = vi.spyOn(signal, "removeEventListener");
    await expect(unlessAborted(Promise.resolve(1), signal)).resolves.toBe(1);
    expect(removed).toHaveBeenCalledOnce();
  });

  test("rejects with the given reason as soon as the signal fires, or has fired before", async () => {
    const controller = new AbortController();
    const pending = new Promise<never>(() => {});
    const waiting = unlessAborted(pending, controller.signal, () => new Error("given up"));
    controller.abort();
    await expect(waiting).rejects.toThrow("given up");
    await expect(unlessAborted(pending, AbortSignal.abort(new Error("earlier")))).rejects.toThrow("earlier");
  });
});
