import { expect, test } from "vitest";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { hostStatus, type Snapshot, statusTable } from "../../../../src/cli/status/clusters.ts";
import { followSnapshot, readSnapshot } from "../../../../src/cli/status/snapshot.ts";
import type { ClusterClient, ListPage, WatchEvent } from "../../../../src/kube/client.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../client.ts";
import { recordedSession } from "../session.ts";

const AT = Date.parse("2026-01-01T00:00:00Z");

function failure(verb: string, resource: string, code: KubeErrorCode, detail: string): KubeError {
  return new KubeError(detail, { code, cluster: "host", verb, resource });
}

/** A host that has one virtual node and nothing else, whose requests fail as the test says, and whose watches end when it is cut. */
function host(
  failureOf: (verb: string, resource: string) => KubeError | undefined,
  cut: Promise<void> = new Promise(() => undefined),
): ClusterClient {
  const fail = (verb: string, { plural }: Resource<KubeObject>): void => {
    const error = failureOf(verb, plural);
    if (error !== undefined) throw error;
  };
  const list = async (resource: Resource<KubeObject>): Promise<ListPage<KubeObject>> => {
    fail("list", resource);
    const metadata = { name: "legation-west", uid: "uid", resourceVersion: "1" };
    return { items: resource.plural === "nodes" ? [{ metadata }] : [], resourceVersion: "1", size: 0 };
  };
  async function* watch(
    resource: Resource<KubeObject>,
    { signal, onOpen }: { readonly signal?: AbortSignal; readonly onOpen?: () => void },
  ): AsyncGenerator<WatchEvent<KubeObject>> {
    fail("watch", resource);
    onOpen?.();
    const stopped = new Promise((resolve) => signal?.addEventListener("abort", resolve, { once: true }));
    await Promise.race([stopped, cut]);
    fail("watch", resource);
  }
  return fakeClient({ list: list as never, watch: watch as never });
}

test.each(["clusters", "nodes", "pods"])(
  "whoever may not list %s is told so, and what to do, also with -w",
  async (resource) => {
    const client = host((verb, asked) =>
      verb === "list" && asked === resource ? failure("list", resource, "Forbidden", "User x cannot") : undefined,
    );
    const { signal } = new AbortController();
    const refusal = {
      message: `host: you may not list ${resource}: User x cannot`,
      remedy: expect.stringContaining("ClusterRole legation-viewer"),
    };
    await expect(readSnapshot(client, signal)).rejects.toMatchObject(refusal);
    await expect(followSnapshot(client, () => undefined, signal, new FakeClock(AT))).rejects.toMatchObject(refusal);
  },
);

test("a stale view says since when and why, until the host answers", async () => {
  let down = false;
  const cut = Promise.withResolvers<void>();
  const client = host(
    (verb, resource) => (down ? failure(verb, resource, "NotSent", "connect ECONNREFUSED") : undefined),
    cut.promise,
  );
  const clock = new FakeClock(AT);
  const interruption = new AbortController();
  const shown: Snapshot[] = [];
  const following = followSnapshot(client, (snapshot) => shown.push(snapshot), interruption.signal, clock);
  const ended = expect(following).rejects.toThrow("enough");
  await clock.advance(1_000);
  expect(shown.at(-1)).toMatchObject({ nodes: [{ metadata: { name: "legation-west" } }] });
  expect(shown.at(-1)).not.toHaveProperty("failing");

  down = true;
  cut.resolve();
  await clock.advance(1_000);
  expect(shown.at(-1)).toMatchObject({
    nodes: [{ metadata: { name: "legation-west" } }],
    failing: { since: AT + 1_000, reason: "connect ECONNREFUSED" },
  });

  down = false;
  await clock.advance(20_000);
  expect(shown.at(-1)).not.toHaveProperty("failing");
  interruption.abort(new Error("enough"));
  await ended;
});

test("shows a stale view with time and reason", () => {
  const failing = { since: AT, reason: "connect ECONNREFUSED" };
  const status = hostStatus({ clusters: [], nodes: [], proxies: [], failing });
  expect(status.failing).toEqual({ since: "2026-01-01T00:00:00.000Z", reason: "connect ECONNREFUSED" });
  expect(statusTable(status, AT, recordedSession().terminal).split("\n").at(-1)).toBe(
    "not read since 2026-01-01T00:00:00.000Z, and shown as it was then: connect ECONNREFUSED",
  );
});
