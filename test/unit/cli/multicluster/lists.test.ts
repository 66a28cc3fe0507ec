import { beforeEach, describe, expect, test } from "vitest";
import { fanOut } from "../../../../src/cli/multicluster/fan-out.ts";
import { startReading } from "../../../../src/cli/multicluster/lists.ts";
import { Gaps } from "../../../../src/cli/shared/gaps.ts";
import { discoveryDocument } from "../../../support/builders/discovery.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { FakeMember, GetRuns, IN_SHOP_ALONE, sessionWith } from "../get/fake-members.ts";

test("reads 64 of 200 clusters at a time, and others in place of those that answer or are late", async () => {
  const clock = new FakeClock();
  const begun = new Map<string, PromiseWithResolvers<object>>();
  const clusters = Array.from({ length: 200 }, (_, index) => {
    const name = `member-${index}`;
    const raw = ({ path }: { readonly path: string }): Promise<object> => {
      if (path !== "/api") return Promise.resolve(discoveryDocument(path, []));
      const answer = Promise.withResolvers<object>();
      begun.set(name, answer);
      return answer.promise;
    };
    return { name, client: { ...new FakeMember(name).client, raw } };
  });
  const request = { queries: [], namespace: "shop", includeObject: "Metadata", timeoutMs: 60_000 } as const;
  const { signal } = new AbortController();
  const answers = fanOut(clusters, clock, (cluster) => {
    return startReading(cluster, request, { gaps: new Gaps(() => undefined), signal });
  });
  expect(answers).toHaveLength(200);
  await clock.advance(0);
  expect(begun.size).toBe(64);
  for (const name of ["member-3", "member-5"]) begun.get(name)?.resolve(discoveryDocument("/api", []));
  await clock.advance(0);
  expect(begun.size).toBe(66);
  await clock.advance(2_000);
  expect(begun.size).toBe(66 + 64);
});

describe("the lists of members", () => {
  let runs: GetRuns;
  beforeEach(() => {
    runs = new GetRuns();
  });

  test("-A shows an account with rights in its namespace alone the objects of that, and says what is hidden", async () => {
    runs.west.isOneNamespaceAlone = true;
    runs.west.pages = [["shop/a"]];
    runs.session = sessionWith({ west: runs.west, east: runs.east }, undefined, IN_SHOP_ALONE);
    expect(await runs.get("pods", "-A")).toEqual({
      code: 0,
      out: "CLUSTER NAMESPACE NAME STATUS\nwest shop a Running\n",
      err:
        "not shown: members without pods or whole Jobs of namespace shop, which the ClusterRole legation-viewer lets you read\n" +
        "not shown: pods of namespaces beside shop, which the right to list them in all namespaces of a member lets you read\n",
    });
    expect(runs.west.lists.at(-1)).toMatchObject({ namespace: "shop" });
  });

  test("names a member that fails, and shows the rest", async () => {
    runs.west.failure = "ServerError";
    runs.east.pages = [["shop/d"]];
    expect(await runs.get("pods")).toEqual({
      code: 0,
      out: "CLUSTER NAME STATUS\neast d Running\n",
      err: "west: ServerError it said\n",
    });
  });

  test("names a member without an answer in time, and shows the rest", async () => {
    runs.west.hangs = true;
    runs.east.pages = [["shop/d"]];
    expect(await runs.get("pods", "--timeout", "50ms")).toEqual({
      code: 0,
      out: "CLUSTER NAME STATUS\neast d Running\n",
      err: "west: no answer within 0.05 s\n",
    });
  });

  test("names members without the type", async () => {
    expect(await runs.get("widgets")).toMatchObject({
      code: 1,
      err: expect.stringContaining('east: has no resource type "widgets"\nwest: has no resource type "widgets"\n'),
    });
  });

  test("shows a named object where it is, and fails if it is nowhere", async () => {
    runs.west.pages = [["shop/a"]];
    expect(await runs.get("pod/a")).toEqual({ code: 0, out: "CLUSTER NAME STATUS\nwest a Running\n", err: "" });
    runs.session = sessionWith({ west: runs.west, east: runs.east });
    expect(await runs.get("pod", "a", "b")).toMatchObject({
      code: 1,
      err: expect.stringContaining('error: pods "b": not found in any of these clusters'),
    });
  });

  test("fails if a named object is nowhere, although some member lacks the type", async () => {
    runs.east.lacksPods = true;
    expect(await runs.get("pod", "a")).toMatchObject({
      code: 1,
      err: expect.stringContaining('error: pods "a": not found in any of these clusters'),
    });
  });
});
