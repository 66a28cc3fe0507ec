import { describe, expect, test } from "vitest";
import { memberOpener } from "../../../../src/cli/shared/open-member.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { signedIn } from "./signed-in.ts";

describe("a pod beside its delegate", () => {
  const annotations = { "legation.dev/cluster": "west", "legation.dev/delegate-uid": "uid-2" };
  const managedFields = [{ manager: "m" }];
  const proxy = proxyPod({
    metadata: { annotations, managedFields },
    spec: { nodeName: "legation-west" },
    status: runningStatus(),
  });
  const delegate = pod({ uid: "uid-2", spec: { nodeName: "node-1" }, status: runningStatus() });
  const ofHost = { find: async () => proxy };

  test("is compared line by line, without managedFields, with the delegate's events", async () => {
    const west = fakeClient({
      find: async () => delegate,
      list: async () => ({ items: [{ reason: "Pulled", type: "Normal" }], resourceVersion: "1", size: 0 }),
    });
    const { get } = await signedIn(ofHost, async () => west);
    const answer = (await get("/api/pods/team/web-0/delegate")).json();
    expect(answer).toMatchObject({ member: "west", events: [{ reason: "Pulled" }] });
    expect(answer.lines).toContainEqual({
      path: "spec.nodeName",
      left: "  nodeName: legation-west",
      right: "  nodeName: node-1",
      differs: true,
    });
    expect(JSON.stringify(answer)).not.toContain("managedFields");
  });

  test.each([
    ["it is another's", async () => pod({ uid: "uid-3" }), "another's"],
    ["it is gone", async () => undefined, "has none of this name"],
    ["the user may not read it", () => Promise.reject(kubeError("Forbidden")), "you may not"],
    ["the member does not answer", () => Promise.reject(kubeError("AnswerLost")), "cannot be read"],
  ])("is shown without it where %s", async (_, find, why) => {
    const { get } = await signedIn(ofHost, async () => fakeClient({ find }));
    const answer = (await get("/api/pods/team/web-0/delegate")).json();
    expect(answer.notRead).toContain(why);
    expect(answer.lines).toContainEqual(expect.objectContaining({ path: "spec.nodeName", differs: true }));
  });

  test("is shown without it where the member is closed to users, never by Legation's own credentials", async () => {
    const host = fakeClient({ find: async () => ({ metadata: { name: "west" }, spec: {} }) });
    const never = () => Promise.reject(new Error("was opened"));
    const open = memberOpener({ host, signal: new AbortController().signal, throughHost: never });
    const { get } = await signedIn(ofHost, open);
    const answer = (await get("/api/pods/team/web-0/delegate")).json();
    expect(answer.notRead).toContain("`legation join west --access`");
  });
});
