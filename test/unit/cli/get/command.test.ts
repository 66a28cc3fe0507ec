import { beforeEach, describe, expect, test, vi } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import { GetRuns, IN_SHOP_ALONE, sessionWith } from "./fake-members.ts";

test.each<[string[], RegExp]>([
  [["pods", "web", "-A"], /--all-namespaces: contradicts a name/],
  [["pods", "web", "-l", "a=b"], /--selector: contradicts a name/],
  [["pods", "a", "b", "-w"], /--watch: is for one type, or for one object/],
  [["pods,deploy", "-w"], /--watch: is for one type, or for one object/],
  [["pods", "--output-watch-events"], /--output-watch-events: is for -w; add it/],
  [["pods", "-o", "text"], /--output: "text" is not a format; write wide, name, json or yaml/],
  [
    ["pods", "--clusters", "region in ("],
    /--clusters: "region in \(" names no clusters: .*; write names, e\.g\. west,east/,
  ],
  [["pods/"], /<type>: "pods\/" is not TYPE\/NAME/],
])("get %j is a wrong command line", async (args, message) => {
  const session = sessionWith({});
  expect(await runProgram(["get", ...args], session, "1.0.0")).toBe(2);
  expect(session.err.join("")).toMatch(message);
});

describe("get", () => {
  let runs: GetRuns;
  beforeEach(() => {
    runs = new GetRuns();
  });

  test("shows the objects of all members, in the order of their names", async () => {
    runs.west.pages = [["shop/a"], ["shop/b"], ["shop/c"]];
    runs.east.pages = [["shop/d"]];
    expect(await runs.get("po")).toEqual({
      code: 0,
      out: "CLUSTER NAME STATUS\neast d Running\nwest a Running\nwest b Running\nwest c Running\n",
      err: "",
    });
    expect(runs.west.lists).toMatchObject([
      { namespace: "shop", limit: 500 },
      { limit: 500, continue: "1" },
      { limit: 500, continue: "2" },
    ]);
  });

  test("--clusters with a selector names the members to write to an account that may not list Clusters", async () => {
    runs.session = sessionWith({ west: runs.west, east: runs.east }, undefined, IN_SHOP_ALONE);
    const { code, err } = await runs.get("pods", "--clusters", "region=eu");
    expect(code).toBe(1);
    expect(err).toContain("name the members (--clusters west for those with something of namespace shop)");
  });

  test("ends with 1 with --strict if a member fails", async () => {
    runs.west.failure = "ServerError";
    expect(await runs.get("pods", "--strict")).toMatchObject({
      code: 1,
      err: "west: ServerError it said\nerror: pods: not shown in full, as told above: west\n",
    });
  });

  test("ends with 1 if all members fail", async () => {
    runs.west.failure = "ServerError";
    runs.east.failure = "Forbidden";
    expect(await runs.get("pods")).toMatchObject({ code: 1 });
  });

  test("watches a member while another one has not answered yet", async () => {
    const stop = new AbortController();
    runs.session = sessionWith({ west: runs.west, east: runs.east }, stop.signal);
    runs.west.hangs = true;
    runs.east.pages = [["shop/d"]];
    const watching = runs.get("pods", "-w", "--timeout", "60s");
    await vi.waitUntil(() => runs.east.watching !== undefined, { timeout: 30_000 });
    expect(runs.session.out.join("")).toContain("east");
    stop.abort(new Error("stopped"));
    await watching;
  }, 40_000);

  test("chooses members by a selector of Clusters", async () => {
    runs.west.pages = [["shop/a"]];
    expect(await runs.get("pods", "--clusters", "region=eu", "-o", "name")).toEqual({
      code: 0,
      out: "west pod/a\n",
      err: "",
    });
    runs.session = sessionWith({ west: runs.west, east: runs.east });
    expect(await runs.get("pods", "--clusters", "region=ap")).toMatchObject({
      code: 3,
      err: expect.stringContaining("--clusters: no Cluster has such labels"),
    });
  });

  test("says that there is nothing", async () => {
    expect(await runs.get("pods")).toEqual({
      code: 0,
      out: "",
      err: "No resources found in namespace shop of 2 clusters.\n",
    });
  });
});
