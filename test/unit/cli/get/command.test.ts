import { beforeEach, describe, expect, test, vi } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import type { RecordedSession } from "../session.ts";
import { FakeMember, IN_SHOP_ALONE, sessionWith } from "./fake-members.ts";

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
  let west: FakeMember;
  let east: FakeMember;
  let session: RecordedSession;
  beforeEach(() => {
    west = new FakeMember("west");
    east = new FakeMember("east");
    session = sessionWith({ west, east });
  });

  async function get(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const code = await runProgram(["get", ...args], session, "1.0.0");
    return { code, out: session.out.join("").replaceAll(/ +/g, " "), err: session.err.join("") };
  }

  test("shows the objects of all members, in the order of their names", async () => {
    west.pages = [["shop/a"], ["shop/b"], ["shop/c"]];
    east.pages = [["shop/d"]];
    expect(await get("po")).toEqual({
      code: 0,
      out: "CLUSTER NAME STATUS\neast d Running\nwest a Running\nwest b Running\nwest c Running\n",
      err: "",
    });
    expect(west.lists).toMatchObject([
      { namespace: "shop", limit: 500 },
      { limit: 500, continue: "1" },
      { limit: 500, continue: "2" },
    ]);
  });

  test("-A shows an account with rights in its namespace alone the objects of that, and says what is hidden", async () => {
    west.isOneNamespaceAlone = true;
    west.pages = [["shop/a"]];
    session = sessionWith({ west, east }, undefined, IN_SHOP_ALONE);
    expect(await get("pods", "-A")).toEqual({
      code: 0,
      out: "CLUSTER NAMESPACE NAME STATUS\nwest shop a Running\n",
      err:
        "not shown: members without pods or whole Jobs of namespace shop, which the ClusterRole legation-viewer lets you read\n" +
        "not shown: pods of namespaces beside shop, which the right to list them in all namespaces of a member lets you read\n",
    });
    expect(west.lists.at(-1)).toMatchObject({ namespace: "shop" });
  });

  test("--clusters with a selector names the members to write to an account that may not list Clusters", async () => {
    session = sessionWith({ west, east }, undefined, IN_SHOP_ALONE);
    const { code, err } = await get("pods", "--clusters", "region=eu");
    expect(code).toBe(1);
    expect(err).toContain("name the members (--clusters west for those with something of namespace shop)");
  });

  test("names a member that fails, and shows the rest", async () => {
    west.failure = "ServerError";
    east.pages = [["shop/d"]];
    expect(await get("pods")).toEqual({
      code: 0,
      out: "CLUSTER NAME STATUS\neast d Running\n",
      err: "west: ServerError it said\n",
    });
  });

  test("ends with 1 with --strict if a member fails", async () => {
    west.failure = "ServerError";
    expect(await get("pods", "--strict")).toMatchObject({
      code: 1,
      err: "west: ServerError it said\nerror: pods: not shown in full, as told above: west\n",
    });
  });

  test("ends with 1 if all members fail", async () => {
    west.failure = "ServerError";
    east.failure = "Forbidden";
    expect(await get("pods")).toMatchObject({ code: 1 });
  });

  test("names a member without an answer in time, and shows the rest", async () => {
    west.hangs = true;
    east.pages = [["shop/d"]];
    expect(await get("pods", "--timeout", "50ms")).toEqual({
      code: 0,
      out: "CLUSTER NAME STATUS\neast d Running\n",
      err: "west: no answer within 0.05 s\n",
    });
  });

  test("watches a member while another one has not answered yet", async () => {
    const stop = new AbortController();
    session = sessionWith({ west, east }, stop.signal);
    west.hangs = true;
    east.pages = [["shop/d"]];
    const watching = get("pods", "-w", "--timeout", "60s");
    await vi.waitUntil(() => east.watching !== undefined, { timeout: 30_000 });
    expect(session.out.join("")).toContain("east");
    stop.abort(new Error("stopped"));
    await watching;
  }, 40_000);

  test("names members without the type", async () => {
    expect(await get("widgets")).toMatchObject({
      code: 1,
      err: expect.stringContaining('east: has no resource type "widgets"\nwest: has no resource type "widgets"\n'),
    });
  });

  test("shows a named object where it is, and fails if it is nowhere", async () => {
    west.pages = [["shop/a"]];
    expect(await get("pod/a")).toEqual({ code: 0, out: "CLUSTER NAME STATUS\nwest a Running\n", err: "" });
    session = sessionWith({ west, east });
    expect(await get("pod", "a", "b")).toMatchObject({
      code: 1,
      err: expect.stringContaining('error: pods "b": not found in any of these clusters'),
    });
  });

  test("fails if a named object is nowhere, although some member lacks the type", async () => {
    east.lacksPods = true;
    expect(await get("pod", "a")).toMatchObject({
      code: 1,
      err: expect.stringContaining('error: pods "a": not found in any of these clusters'),
    });
  });

  test("chooses members by a selector of Clusters", async () => {
    west.pages = [["shop/a"]];
    expect(await get("pods", "--clusters", "region=eu", "-o", "name")).toEqual({
      code: 0,
      out: "west pod/a\n",
      err: "",
    });
    session = sessionWith({ west, east });
    expect(await get("pods", "--clusters", "region=ap")).toMatchObject({
      code: 3,
      err: expect.stringContaining("--clusters: no Cluster has such labels"),
    });
  });

  test("says that there is nothing", async () => {
    expect(await get("pods")).toEqual({
      code: 0,
      out: "",
      err: "No resources found in namespace shop of 2 clusters.\n",
    });
  });
});
