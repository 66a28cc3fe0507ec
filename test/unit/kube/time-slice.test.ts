import { afterEach, expect, test, vi } from "vitest";
import { TimeSlice } from "../../../src/kube/event-loop.ts";

afterEach(() => vi.restoreAllMocks());

test("ends after more than ten milliseconds, then starts anew", async () => {
  const now = vi.spyOn(performance, "now").mockReturnValue(0);
  const slice = new TimeSlice(new AbortController().signal);
  now.mockReturnValue(10);
  expect(slice.due).toBe(false);
  now.mockReturnValue(11);
  expect(slice.due).toBe(true);
  await slice.next();
  expect(slice.due).toBe(false);
});

test("lets other callbacks run between two slices", async () => {
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  await new TimeSlice(new AbortController().signal).next();
  expect(turned).toBe(true);
});

test("rejects after its signal fired", async () => {
  const slice = new TimeSlice(AbortSignal.abort(new Error("called off")));
  await expect(slice.next()).rejects.toThrow("called off");
});
