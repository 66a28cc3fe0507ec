import { describe, expect, test } from "vitest";
import { MemberClients, memberOpener } from "../../../../src/cli/shared/open-member.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

/** The user's way to members of a host, and the names for which a client was opened. */
function opener(find: ClusterClient["find"]) {
  const opened: string[] = [];
  const throughHost = async (name: string): Promise<ClusterClient> => {
    opened.push(name);
    return fakeClient({});
  };
  const open = memberOpener({ host: fakeClient({ find }), signal: new AbortController().signal, throughHost });
  return { open, opened };
}

const forbidden: ClusterClient["find"] = () => Promise.reject(kubeError("Forbidden"));

describe("the way to a member", () => {
  test("is not opened for a Cluster that is not there", async () => {
    const { open, opened } = opener(async () => undefined);
    await expect(open("nowhere")).rejects.toThrow("Cluster nowhere: has not joined");
    expect(opened).toEqual([]);
  });

  test("is opened for a user who may not read Clusters", async () => {
    const { open, opened } = opener(forbidden);
    await open("west");
    expect(opened).toEqual(["west"]);
  });

  test.each(["../../api/v1", "..", "west/proxy/../..", "West", "x".repeat(55)])(
    "is not opened for %s",
    async (name) => {
      const { open, opened } = opener(forbidden);
      await expect(open(name)).rejects.toThrow("the name of the member");
      expect(opened).toEqual([]);
    },
  );

  test("is opened for some hundred members of one session", async () => {
    const { open, opened } = opener(forbidden);
    const members = new MemberClients(open);
    for (let index = 0; index < 500; index++) await members.client(`member-${index}`);
    await expect(members.client("one-more")).rejects.toThrow("500");
    await members.client("member-0");
    expect(opened).toHaveLength(500);
  });
});
