import { afterEach, describe, expect, test, vi } from "vitest";
import { readDocument } from "../../../../../src/cli/ui/page/document.ts";

const signal = new AbortController().signal;
const before = { value: "old", readAt: 1 };

describe("reading a document", () => {
  afterEach(() => vi.unstubAllGlobals());

  test("returns the document with its time", async () => {
    vi.stubGlobal("fetch", async () => Response.json("new"));
    expect(await readDocument("/x", before, signal)).toEqual({ value: "new", readAt: expect.any(Number) });
  });

  test.each([
    ["a refusal", async () => Response.json({ message: "is forbidden" }, { status: 403 }), "is forbidden"],
    [
      "a refusal of the gate",
      async () => new Response("this address was used already", { status: 401 }),
      "this address was used already",
    ],
    [
      "an answer of a proxy",
      async () => new Response("<html>", { status: 502, headers: { "content-type": "text/html" } }),
      "the answer has the status 502",
    ],
    [
      "a server that is gone",
      () => Promise.reject(new Error("refused")),
      "the page's server does not answer: Error: refused",
    ],
  ])("keeps the document of before, with the reason, after %s", async (_, fetch, problem) => {
    vi.stubGlobal("fetch", fetch);
    expect(await readDocument("/x", before, signal)).toEqual({ ...before, problem });
  });

  test("gives up waiting, and says so", async () => {
    const silent = (_: string, { signal: cut }: { signal: AbortSignal }): Promise<never> =>
      new Promise((_, reject) => cut.addEventListener("abort", () => reject(cut.reason)));
    vi.stubGlobal("fetch", silent);
    expect(await readDocument("/x", {}, signal, 5)).toEqual({ problem: "no answer within 0.005 s" });
  });
});
