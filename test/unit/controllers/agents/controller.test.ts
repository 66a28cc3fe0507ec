import { X509Certificate } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { type Secret, type Stored, secretText } from "../../../../src/api/kubernetes.ts";
import { requestClient } from "../../../../src/certificates/issue.ts";
import { issuedAt } from "../../../../src/certificates/validity.ts";
import { firstAuthorities, readAuthorities, renewed, trusted } from "../../../../src/controllers/agents/authority.ts";
import { AgentController } from "../../../../src/controllers/agents/controller.ts";
import { sha256 } from "../../../../src/controllers/agents/credentials.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import type { AgentIdentity } from "../../../../src/tunnel/agent-session.ts";
import type { Hub } from "../../../../src/tunnel/hub.ts";
import { answerOf, fieldsOf } from "../../../support/builders/answers.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const DAY_MS = 24 * 60 * 60_000;
const now = Date.UTC(2026, 0, 1);
const hubSecret = firstAuthorities("hub.example.org:8132", now);
const requests = [requestClient(), requestClient()] as const;
const TOKEN = "right";

function clusterNamed(name: string, spec: Partial<Cluster["spec"]> = { agent: {} }): Stored<Cluster> {
  return {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name, uid: `uid-of-${name}`, resourceVersion: "1" },
    spec: { credentialsSecret: { name: `member-${name}` }, ...spec },
  } as Stored<Cluster>;
}

function memberSecret(name: string, annotations: Record<string, string> = {}): Stored<Secret> {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      namespace: "legation-system",
      name: `member-${name}`,
      uid: "s",
      resourceVersion: "7",
      annotations: {
        "legation.dev/agent-token-sha256": sha256(TOKEN),
        "legation.dev/agent-token-expires": new Date(now + 60_000).toISOString(),
        "legation.dev/token-expires": new Date(now).toISOString(),
        ...annotations,
      },
    },
  } as Stored<Secret>;
}

/** A host with these Clusters, of which the test sees the patches. */
async function controllerOf(
  clusters: readonly Stored<Cluster>[],
  {
    patch,
    open,
  }: { readonly patch?: (body: object) => Promise<void>; readonly open?: (hub: Hub) => Promise<Hub> } = {},
) {
  const clock = new FakeClock(now);
  const patches: { readonly name: string; readonly body: Partial<Secret> }[] = [];
  const secrets = new Map(clusters.map(({ metadata: { name } }) => [`member-${name}`, memberSecret(name)]));
  const asked: string[] = [];
  const accounts: string[] = [];
  const accessSecrets = new Map<string, Secret>();
  const rechecked: string[] = [];
  const forgotten: string[] = [];
  const told: { homeAddress?: string } = {};
  const events = new Events<ControllerEvents>();
  const closed = { count: 0 };
  const renewedWith: string[] = [];
  const hub: Partial<Hub> = {
    askForCredentials: (name, account) => {
      asked.push(name);
      accounts.push(account);
    },
    recheck: (name) => rechecked.push(name),
    forget: (name) => forgotten.push(name),
    agent: () => ({ since: now, certificateExpires: undefined, version: "1.2.3", ...told }),
    renew: ({ cert }) => renewedWith.push(cert),
    close: async () => {
      closed.count += 1;
    },
  };
  const endpoints: string[] = [];
  const host = fakeClient({
    find: async (_resource, { name }) => accessSecrets.get(name),
    patch: async (_resource, { namespace, name }, sent) => {
      const body: Partial<Secret> = fieldsOf(sent);
      await patch?.(body);
      if (namespace === "legation-access") {
        accessSecrets.set(name, answerOf(body));
        return {};
      }
      if (body.kind === "EndpointSlice") endpoints.push(name);
      else patches.push({ name, body });
      const before = secrets.get(name);
      if (before === undefined) return {};
      const annotations = { ...before.metadata.annotations, ...body.metadata?.annotations };
      secrets.set(name, {
        ...before,
        data: { ...before.data, ...body.data },
        metadata: { ...before.metadata, annotations },
      });
      return {};
    },
  });
  const secretOfHub = (await hubSecret) as Stored<Secret>;
  const registry = {
    cluster: (name: string) => clusters.find(({ metadata }) => metadata.name === name),
    clusters: () => [...clusters],
    secret: ({ spec }: Stored<Cluster>) => secrets.get(spec.credentialsSecret.name),
    systemSecret: () => secretOfHub,
    member: () => undefined,
  };
  const controller = new AgentController({
    host,
    hostId: "host-id",
    registry,
    events,
    hub: {
      open: async ({ cert }) => {
        renewedWith.push(cert);
        return (await open?.(hub as Hub)) ?? (hub as Hub);
      },
      endpoint: { service: "legation-hub", address: "10.0.0.1", port: 8132 },
      address: "10.0.0.1:8132",
    },
    clock,
    log: createLogger({ level: "silent" }),
  });
  onTestFinished(() => controller.stop());
  return {
    controller,
    clock,
    patches,
    secrets,
    accessSecrets,
    served: renewedWith,
    asked,
    accounts,
    rechecked,
    forgotten,
    told,
    events,
    endpoints,
    closed,
  };
}

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

/** Lets requests to the fake host finish. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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

  test("begins anew after its Cluster has left, but not after a change of it", async () => {
    const { controller, events, forgotten } = await controllerOf([clusterNamed("west")]);
    await controller.start();
    events.emit("cluster", "west");
    events.emit("cluster", "east");
    expect(forgotten).toEqual(["east"]);
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

  test("is renewed for the agent that it names", async () => {
    const { controller } = await controllerOf([clusterNamed("west")]);
    await controller.start();
    const agent = { cluster: "west", uid: "uid-of-west" };
    expect(controller.refusal(agent)).toBeUndefined();
    const { request } = await requests[1];
    await expect(controller.certify(request, { agent })).resolves.toHaveProperty("certificate");
  });
});

describe("the way of pods to the home API through an agent", () => {
  test.each<[string, Partial<Cluster["spec"]>, boolean]>([
    ["is open where the Cluster says so", { agent: { homeAPI: true } }, true],
    ["is closed without that", { agent: {} }, false],
    ["is closed where pods use another address", { agent: { homeAPI: true }, homeAPI: { server: "https://h" } }, false],
    ["is closed without an agent", {}, false],
  ])("%s", async (_, spec, isOpen) => {
    const { controller } = await controllerOf([clusterNamed("west", spec)]);
    await controller.start();
    const refusal = controller.homeApiRefusal("west");
    if (isOpen) expect(refusal).toBeUndefined();
    else expect(refusal).toContain("run `legation join west --agent --home-api-through-agent` again");
    expect(controller.homeApiRefusal("north")).toContain("pods of Cluster north do not reach");
  });

  test("wakes pods that wait for it once for each address that the agent tells", async () => {
    const { controller, told, events } = await controllerOf([clusterNamed("west", { agent: { homeAPI: true } })]);
    await controller.start();
    const heard: string[] = [];
    events.on("homeApi", () => heard.push("homeApi"));
    events.on("agent", (name) => heard.push(name));
    controller.onFacts("west");
    told.homeAddress = "10.96.7.7";
    controller.onFacts("west");
    controller.onFacts("west");
    expect(heard).toEqual(["west", "west", "homeApi", "west"]);
  });
});

describe("credentials from an agent", () => {
  const payload = Buffer.from(
    JSON.stringify({
      sub: "system:serviceaccount:legation-system:legation-host",
      iat: now / 1000,
      exp: now / 1000 + 3600,
    }),
  ).toString("base64url");
  const credentials = {
    server: "https://10.0.0.1:6443",
    token: `e30.${payload}.c2ln`,
    expires: new Date(now + 3_600_000).toISOString(),
    certificateAuthority: "",
  };

  test("are requested again when they could not be stored", async () => {
    let failures = 1;
    const { controller, clock, asked, patches } = await controllerOf([clusterNamed("west")], {
      patch: async ({ data }: Partial<Secret>) => {
        if (data !== undefined && failures-- > 0) throw kubeError("Conflict");
      },
    });
    await controller.start();
    expect(controller.wantsCredentials("west")).toBe(true);
    controller.onCredentials("west", "host", credentials);
    await clock.advance(30_000);
    expect(asked).toEqual(["west"]);
    controller.onCredentials("west", "host", credentials);
    await clock.advance(30_000);
    expect(patches.map(({ name }) => name)).toEqual(["member-west"]);
    expect(controller.wantsCredentials("west")).toBe(false);
    expect(asked).toEqual(["west"]);
  });
});

describe("credentials from an agent of a member whose users the host serves", () => {
  const brought = (account: string, certificateAuthority: string, id: string) => {
    const sub = `system:serviceaccount:legation-system:${account}`;
    const claims = JSON.stringify({ sub, iat: now / 1000, exp: now / 1000 + 3600, jti: id });
    return {
      server: "https://10.0.0.1:6443",
      token: `e30.${Buffer.from(claims).toString("base64url")}.c2ln`,
      expires: new Date(now + 3_600_000).toISOString(),
      certificateAuthority,
    };
  };

  test("are requested for both accounts once they name another authority", async () => {
    const west = clusterNamed("west", { agent: {}, access: { prefix: "legation:" } });
    const { controller, clock, accounts, secrets, accessSecrets } = await controllerOf([west]);
    await controller.start();
    const stored = (): string | undefined => secretText(secrets.get("member-west"), "kubeconfig");
    // The member does not take the stored credentials, and the agent brings others.
    const renews = async (authority: string, id: string): Promise<void> => {
      await clock.advance(30_000);
      controller.connectionOf("west").onUselessCredentials();
      const before = stored();
      controller.onCredentials("west", "host", brought("legation-host", authority, id));
      await vi.waitUntil(() => stored() !== before, { timeout: 20_000 });
    };
    await renews("old", "1");
    controller.onCredentials("west", "access", brought("legation-access-host-id", "old", "2"));
    await vi.waitUntil(() => accessSecrets.has("member-west"), { timeout: 20_000 });
    await settled();
    accounts.length = 0;
    await renews("old", "3");
    await settled();
    expect(accounts).toEqual(["host"]);
    await renews("new", "4");
    await vi.waitUntil(() => accounts.includes("access"), { timeout: 20_000 });
  });
});

describe("the hub's endpoint", () => {
  test("is published a second after the first attempt has failed", async () => {
    let failures = 1;
    const { controller, clock, endpoints } = await controllerOf([], {
      patch: async () => {
        if (failures-- > 0) throw kubeError("ServerError");
      },
    });
    await controller.start();
    expect(endpoints).toEqual([]);
    await clock.advance(1_000);
    await vi.waitFor(() => expect(endpoints).toEqual(["legation-hub"]), { timeout: 10_000 });
  });

  test("is written again each minute, since it may be deleted or another's, until the controller stops", async () => {
    const { controller, clock, endpoints } = await controllerOf([]);
    await controller.start();
    expect(endpoints).toHaveLength(1);
    await clock.advance(60_000);
    await vi.waitFor(() => expect(endpoints).toHaveLength(2), { timeout: 10_000 });
    await controller.stop();
    await clock.advance(300_000);
    expect(endpoints).toHaveLength(2);
  });
});

describe("the hub's authority", () => {
  const secretWith = (data: Record<string, string>): Secret => ({ apiVersion: "v1", kind: "Secret", data });

  test("is renewed in two steps, of which agents trust each result before it is used", async () => {
    const first = readAuthorities(await hubSecret);
    if (first === undefined) throw new Error("no authorities");
    expect(first.addresses).toEqual(["hub.example.org:8132"]);
    const due = now + 2_440 * DAY_MS;
    expect(await renewed(first, due - 20 * DAY_MS)).toBeUndefined();
    const announced = readAuthorities(secretWith((await renewed(first, due)) ?? {}));
    if (announced === undefined) throw new Error("nothing was due");
    expect(announced.current).toEqual(first.current);
    expect(trusted(announced)).toBe(first.current.cert + announced.next?.cert);
    expect(issuedAt(announced.next?.cert ?? "")).toBe(due);
    expect(await renewed(announced, due + 30 * DAY_MS - 1)).toBeUndefined();
    const changed = readAuthorities(secretWith((await renewed(announced, due + 30 * DAY_MS)) ?? {}));
    if (changed === undefined) throw new Error("nothing was due");
    expect(changed.current).toEqual(announced.next);
    expect(changed.next).toBeUndefined();
    // Agents' certificates of the first authority are valid for a while.
    expect(trusted(changed)).toBe(changed.current.cert + first.current.cert);
    expect(await renewed(changed, due + 32 * DAY_MS)).toBeUndefined();
  });

  test.each([
    ["no Secret", undefined],
    ["a Secret without keys", secretWith({})],
    ["a certificate without its key", secretWith({ "ca.crt": "eA==" })],
  ])("is not read from %s", (_name, secret) => {
    expect(readAuthorities(secret)).toBeUndefined();
  });
});

test("the hub's certificate that was issued by a clock far ahead is replaced once the clock is set back", async () => {
  const { controller, clock, served } = await controllerOf([clusterNamed("west")]);
  clock.jump(40 * DAY_MS);
  await controller.start();
  clock.jump(-40 * DAY_MS);
  await clock.advance(30_000);
  await vi.waitFor(() => expect(served).toHaveLength(2), { timeout: 10_000 });
  const startsAt = served.map((cert) => new X509Certificate(cert).validFromDate.getTime());
  expect(startsAt[0]).toBeGreaterThan(clock.wall());
  expect(startsAt[1]).toBeLessThan(clock.wall());
});

describe("a hub that cannot serve", () => {
  test("stops nothing else, says why, and is opened a second later", async () => {
    let taken = true;
    const open = async (hub: Hub): Promise<Hub> => {
      if (taken) throw new Error("listen EADDRINUSE: address already in use :::8132");
      return hub;
    };
    const { controller, clock, endpoints } = await controllerOf([clusterNamed("west")], { open });
    await controller.start();
    const dialled = controller.connectionOf("west").dial(AbortSignal.timeout(1_000));
    await expect(dialled).rejects.toThrow("the hub does not serve: listen EADDRINUSE");
    taken = false;
    await clock.advance(1_000);
    await vi.waitFor(() => expect(endpoints).toEqual(["legation-hub"]), { timeout: 10_000 });
  });

  test("is waited for by those who ask before it was opened", async () => {
    const dial = (): Promise<never> => Promise.reject(new Error("asked the hub"));
    const open = async (hub: Hub): Promise<Hub> => Object.assign(hub, { dial });
    const { controller } = await controllerOf([clusterNamed("west")], { open });
    const dialled = controller.connectionOf("west").dial(new AbortController().signal);
    const rejected = expect(dialled).rejects.toThrow("asked the hub");
    await controller.start();
    await rejected;
  });

  test("is waited for no longer than the caller does", async () => {
    const { controller } = await controllerOf([clusterNamed("west")]);
    const dialled = controller.connectionOf("west").dial(AbortSignal.timeout(20));
    await expect(dialled).rejects.toThrow("Secret legation-system/legation-hub is missing");
  });

  test("is closed when the controller was stopped while it was opened", async () => {
    const opening = Promise.withResolvers<void>();
    const opened = Promise.withResolvers<void>();
    const open = async (hub: Hub): Promise<Hub> => {
      opening.resolve();
      await opened.promise;
      return hub;
    };
    const { controller, closed } = await controllerOf([clusterNamed("west")], { open });
    const starting = controller.start();
    await opening.promise;
    await controller.stop();
    opened.resolve();
    await starting;
    expect(closed.count).toBe(1);
  });
});
