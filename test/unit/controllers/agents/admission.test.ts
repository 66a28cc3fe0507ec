import { X509Certificate } from "node:crypto";
import { describe, expect, test } from "vitest";
import { requestClient } from "../../../../src/certificates/issue.ts";
import { sha256 } from "../../../../src/controllers/agents/credentials.ts";
import type { AgentIdentity } from "../../../../src/tunnel/agent-session.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { clusterNamed, controllerOf, memberSecret, TOKEN } from "./agents-scene.ts";

const requests = [requestClient(), requestClient()] as const;

/** Returns the agent that a certificate names, as the hub reads it. */
function agentOf(certificate: string): AgentIdentity {
  const subject = new Map(
    new X509Certificate(certificate).subject.split("\n").map((part): [string, string] => {
      const [name = "", value = ""] = part.split("=");
      return [name, value];
    }),
  );
  return { cluster: subject.get("CN") ?? "", uid: subject.get("OU") ?? "", join: subject.get("O") };
}

describe("an agent's first certificate", () => {
  test("is given for the token of its Cluster, again to the same key, and to no other", async () => {
    const { controller, patches } = await controllerOf([clusterNamed("west")]);
    await controller.start();
    const [own, other] = await Promise.all(requests);
    const proof = { cluster: "west", token: TOKEN };
    const { certificate, authorities } = await controller.certify(own.request, proof);
    expect(certificate).toContain("BEGIN CERTIFICATE");
    expect(authorities).toBe(controller.authorities());
    await controller.certify(own.request, proof);
    expect(patches).toHaveLength(1);
    await expect(controller.certify(other.request, proof)).rejects.toThrow(
      "Cluster west: another agent has used the token; run `legation join west --agent` again for a new one",
    );
  });

  test.each([
    ["a wrong token", "west", "wrong", 0, "Cluster west: the token is not valid"],
    ["the token of another Cluster", "east", TOKEN, 0, "Cluster east: the token is not valid"],
    ["a token that has expired", "west", TOKEN, 60_000, "Cluster west: the token has expired"],
    ["an unknown Cluster", "north", TOKEN, 0, "Cluster north: the token is not valid"],
    ["a Cluster without an agent", "direct", TOKEN, 0, "Cluster direct: the token is not valid"],
  ])("is refused for %s", async (_name, cluster, token, laterMs, reason) => {
    const clusters = [clusterNamed("west"), clusterNamed("east"), clusterNamed("direct", {})];
    const { controller, clock, patches, secrets } = await controllerOf(clusters);
    secrets.set("member-east", memberSecret("east", { "legation.dev/agent-token-sha256": sha256("of east") }));
    await controller.start();
    await clock.advance(laterMs);
    const { request } = await requests[0];
    await expect(controller.certify(request, { cluster, token })).rejects.toThrow(reason);
    expect(patches).toEqual([]);
  });

  test("is refused for the token before its request is read, which costs more", async () => {
    const { controller } = await controllerOf([clusterNamed("west")]);
    await controller.start();
    await expect(controller.certify("no request", { cluster: "west", token: "wrong" })).rejects.toThrow(
      "the token is not valid",
    );
    await expect(controller.certify("no request", { cluster: "west", token: TOKEN })).rejects.toThrow(
      "no certificate signing request",
    );
  });

  test("is refused while another key uses the token at the same time", async () => {
    const { controller } = await controllerOf([clusterNamed("west")], {
      patch: async () => {
        throw kubeError("Conflict");
      },
    });
    await controller.start();
    const { request } = await requests[0];
    await expect(controller.certify(request, { cluster: "west", token: TOKEN })).rejects.toThrow("tries again");
  });
});

describe("a new join of a Cluster with an agent", () => {
  test("voids the certificates of earlier joins once its own agent has used its token", async () => {
    const { controller, secrets, rechecked } = await controllerOf([clusterNamed("west")]);
    await controller.start();
    const [earlier, own] = await Promise.all(requests);
    const proof = { cluster: "west", token: TOKEN };
    const first = agentOf((await controller.certify(earlier.request, proof)).certificate);
    expect(controller.refusal(first)).toBeUndefined();
    const { "legation.dev/agent-key-sha256": _used, ...kept } = secrets.get("member-west")?.metadata.annotations ?? {};
    const again = memberSecret("west", { ...kept, "legation.dev/agent-token-sha256": sha256("again") });
    secrets.set("member-west", again);
    // The member keeps its connection until its new agent comes.
    expect(controller.refusal(first)).toBeUndefined();
    const before = rechecked.length;
    const second = agentOf((await controller.certify(own.request, { cluster: "west", token: "again" })).certificate);
    expect(rechecked.slice(before)).toEqual(["west"]);
    expect(controller.refusal(first)).toContain("Cluster west has joined anew");
    await expect(controller.certify(earlier.request, { agent: first })).rejects.toThrow("has joined anew");
    expect(controller.refusal(second)).toBeUndefined();
    const renewed = agentOf((await controller.certify(earlier.request, { agent: second })).certificate);
    expect(controller.refusal(renewed)).toBeUndefined();
  });

  test("voids certificates that name no join", async () => {
    const { controller, secrets } = await controllerOf([clusterNamed("west")]);
    await controller.start();
    const agent = { cluster: "west", uid: "uid-of-west" };
    expect(controller.refusal(agent)).toBeUndefined();
    secrets.set("member-west", memberSecret("west", { "legation.dev/agent-join": "f00" }));
    expect(controller.refusal(agent)).toContain("Cluster west has joined anew");
  });
});

describe("an agent's certificate", () => {
  test.each([
    ["of a Cluster that was deleted", "north", "1", "Cluster north has not joined"],
    ["of a Cluster that is reached directly", "direct", "uid-of-direct", "Cluster direct has joined without an agent"],
    ["of an earlier Cluster of the name", "west", "earlier", "Cluster west has joined anew"],
  ])("%s is refused, and not renewed", async (_name, cluster, uid, reason) => {
    const { controller } = await controllerOf([clusterNamed("west"), clusterNamed("direct", {})]);
    await controller.start();
    expect(controller.refusal({ cluster, uid })).toContain(reason);
    const { request } = await requests[0];
    await expect(controller.certify(request, { agent: { cluster, uid } })).rejects.toThrow(reason);
  });

  test("is refused before its request is read, which costs more", async () => {
    const { controller } = await controllerOf([]);
    await controller.start();
    const agent = { cluster: "west", uid: "uid-of-west" };
    await expect(controller.certify("no request", { agent })).rejects.toThrow("Cluster west has not joined");
  });

  test("is renewed for the agent that it names, which the hub notes", async () => {
    const { controller, renewed } = await controllerOf([clusterNamed("west")]);
    await controller.start();
    const agent = { cluster: "west", uid: "uid-of-west" };
    expect(controller.refusal(agent)).toBeUndefined();
    const { request } = await requests[1];
    const { certificate } = await controller.certify(request, { agent });
    expect([...renewed]).toEqual([["west", new X509Certificate(certificate).validToDate.getTime()]]);
  });
});
