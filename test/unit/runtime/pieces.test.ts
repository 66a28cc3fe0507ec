import { afterEach, expect, test, vi } from "vitest";
import { Pieces } from "../../../src/runtime/pieces.ts";

afterEach(() => vi.restoreAllMocks());

test("a piece is done after more than ten milliseconds, and then the next one begins", async () => {
  const now = vi.spyOn(performance, "now").mockReturnValue(0);
  const pieces = new Pieces(new AbortController().signal);
  now.mockReturnValue(10);
  expect(pieces.due).toBe(false);
  now.mockReturnValue(11);
  expect(pieces.due).toBe(true);
  await pieces.next();
  expect(pieces.due).toBe(false);
});

test("others have their turn between two pieces", async () => {
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  await new Pieces(new AbortController().signal).next();
  expect(turned).toBe(true);
});

test("work that is called off goes no further", async () => {
  const pieces = new Pieces(AbortSignal.abort(new Error("called off")));
  await expect(pieces.next()).rejects.toThrow("called off");
});
