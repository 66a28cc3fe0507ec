import { describe, expect, test } from "vitest";
import { isRunOf, openSource, placesOf, podsOf } from "../../../../src/cli/logs/sources.ts";
import type { ClusterChoice } from "../../../../src/cli/shared/session.ts";
import { secrets } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection, recordedSession } from "../session.ts";
import { copyOf, job } from "./log-cluster.ts";

const SECRET = {
  metadata: { name: "member-west", namespace: "legation-system" },
  data: { kubeconfig: btoa("its kubeconfig") },
};

function unused(): never {
  throw new Error("this test reads no table");
}

describe("the way to a member's logs", () => {
  test("is the user's own kubeconfig, of which the member's context is preferred", async () => {
    const chosen: ClusterChoice[] = [];
    const west = fakeClient({ cluster: "west" });
    const session = recordedSession({
      connect: async (choice) => {
        chosen.push(choice);
        return connection(west);
      },
    });
    const source = await openSource("west", {
      host: connection(fakeClient({})),
      choice: {},
      memberKubeconfig: "own.yaml",
      session,
    });
    expect(source).toEqual({ name: "west", client: west, isHost: false });
    expect(chosen).toEqual([{ kubeconfig: "own.yaml", preferredContext: "west" }]);
  });

  test("is the host's stored credentials without one", async () => {
    const host = new MemoryCluster("host", "uid");
    host.put(secrets, SECRET);
    const texts: string[] = [];
    const session = recordedSession({
      connectText: async (text) => {
        texts.push(text);
        return connection(fakeClient({ cluster: "west" }));
      },
    });
    const source = await openSource("west", { host: connection(host.client), choice: {}, session });
    expect(source.client.cluster).toBe("west");
    expect(texts).toEqual(["its kubeconfig"]);
  });

  test("is the host's API server into a member that is open for users", async () => {
    const cluster = { metadata: { name: "west" }, spec: { access: { prefix: "legation:" } } };
    const west = { ...fakeClient({ cluster: "west" }), listTable: unused, watchTable: unused };
    const opened: unknown[] = [];
    const session = recordedSession({
      openReading: async (...wanted) => {
        opened.push(wanted);
        return west;
      },
    });
    const choice = { context: "host" };
    const host = connection(fakeClient({ find: async () => cluster }));
    expect(await openSource("west", { host, choice, session })).toEqual({ name: "west", client: west, isHost: false });
    expect(opened).toEqual([[choice, "west"]]);
  });

  test("is refused with the remedy to who may not read these", async () => {
    const find = async (): Promise<never> => {
      throw kubeError("Forbidden", "no", {
        verb: "get",
        resource: "secrets",
        namespace: "legation-system",
        objectName: "member-west",
      });
    };
    const opening = openSource("west", {
      host: connection(fakeClient({ find })),
      choice: {},
      session: recordedSession(),
    });
    await expect(opening).rejects.toMatchObject({
      message:
        "west: you may not read the host's credentials for it (get secrets legation-system/member-west), which are for all of its namespaces",
      remedy: expect.stringMatching(/a context west: --member-kubeconfig FILE; .* role view/),
    });
  });

  test("is refused when the host has none", async () => {
    const host = new MemoryCluster("host", "uid");
    const opening = openSource("west", { host: connection(host.client), choice: {}, session: recordedSession() });
    await expect(opening).rejects.toThrow(
      "no usable credentials for it, such as the Secret legation-system/member-west",
    );
  });

  test("is the host itself for a Job whose pods are proxies", async () => {
    const host = connection(fakeClient({}));
    expect(await openSource("(host)", { host, choice: {}, session: recordedSession() })).toEqual({
      name: "host",
      client: host.client,
      isHost: true,
    });
  });
});

describe("the places of a Job's pods", () => {
  test.each([
    ["the member of a whole Job", job({ member: "west" }), ["west"]],
    ["every member of a divided Job", job({ member: "east,west" }), ["east", "west"]],
    ["none before it has a member", job(), []],
    ["the host, of another Job", job({ whole: false }), ["(host)"]],
    ["a member that is called host", job({ member: "host" }), ["host"]],
  ])("are %s", (_case, of, places) => {
    expect(placesOf(of)).toEqual(places);
  });

  test("hold the Job itself or its copy, and no other Job of that name", () => {
    const of = job();
    expect(isRunOf(of, of)).toBe(true);
    expect(isRunOf(copyOf(of), of)).toBe(true);
    expect(isRunOf(copyOf(job({ uid: "earlier" })), of)).toBe(false);
  });

  test("have pods by the Job's own selector", () => {
    expect(podsOf(job({ uid: "u" }))).toEqual({
      namespace: "shop",
      labelSelector: "batch.kubernetes.io/controller-uid=u",
    });
  });
});
