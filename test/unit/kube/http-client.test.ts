import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Pod } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import type { ClusterCredentials } from "../../../src/kube/credentials.ts";
import { leases, pods } from "../../../src/kube/resources.ts";
import { anonymous, connect, kubeErrorOf } from "../../support/fault-server/connect.ts";
import { answerJson, answerStatus, FaultServer } from "../../support/fault-server/fault-server.ts";
import { only, refuse } from "../../support/fault-server/faults.ts";

const web: Pod = { apiVersion: "v1", kind: "Pod", metadata: { namespace: "default", name: "web" } };
const ref = { namespace: "default", name: "web" };
let server: FaultServer;
let client: ClusterClient;
beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server);
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

describe("errors from the server's answer", () => {
  test.each([
    [400, "BadRequest", "BadRequest"],
    [403, "Forbidden", "Forbidden"],
    [404, "NotFound", "NotFound"],
    [405, "MethodNotAllowed", "MethodNotAllowed"],
    [409, "AlreadyExists", "AlreadyExists"],
    [409, "Conflict", "Conflict"],
    [410, "Expired", "Gone"],
    [413, "RequestEntityTooLarge", "TooLarge"],
    [422, "Invalid", "Unprocessable"],
    [500, "InternalError", "ServerError"],
    [504, "Timeout", "ServerError"],
  ] as const)("%i %s is %s", async (status, reason, code) => {
    server.faults.push(refuse(status, reason));
    const error = await kubeErrorOf(client.create(pods, web));
    expect(error).toMatchObject({
      code,
      status,
      reason,
      cluster: "west",
      verb: "create",
      detail: `refused with ${reason}`,
    });
    expect(error.message).toBe(`west: create pods default/web: refused with ${reason}`);
    expect(server.requests).toHaveLength(1);
  });

  test("quotes a proxy's HTML, and does not parse it", async () => {
    server.faults.push((_request, response) => {
      response.writeHead(502).end("<html>bad gateway</html>");
      return true;
    });
    const error = await kubeErrorOf(client.create(pods, web));
    expect(error).toMatchObject({ code: "ServerError", status: 502, detail: "HTTP 502: <html>bad gateway</html>" });
  });

  test.each([
    ["text that is not JSON", "{"],
    ["JSON that is not an object of the API", '{"kind":"Pod"}'],
  ])("%s with status 200 is BadAnswer", async (_case, text) => {
    server.always = (_request, response) => {
      response.writeHead(200).end(text);
      return true;
    };
    expect((await kubeErrorOf(client.get(pods, ref))).code).toBe("BadAnswer");
  });

  test("find returns undefined for a missing object", async () => {
    expect(await client.find(pods, ref)).toBeUndefined();
  });
});

describe("404 of an intermediary", () => {
  const plain = (text: string): void => {
    server.always = (_request, response) => {
      response.writeHead(404, { "content-type": "text/plain" }).end(text);
      return true;
    };
  };

  test.each(["default backend - 404", "404 page not found\n", "", "{}"])("proves no absence: %j", async (text) => {
    plain(text);
    expect((await kubeErrorOf(client.find(pods, ref))).code).toBe("BadAnswer");
    expect((await kubeErrorOf(client.delete(pods, ref))).code).toBe("BadAnswer");
    expect((await kubeErrorOf(client.create(pods, web))).code).toBe("BadAnswer");
  });

  test("differs from an API server's response for an unserved group", async () => {
    plain("404 page not found\n");
    expect(await client.find(leases, ref)).toBeUndefined();
    expect((await kubeErrorOf(client.raw({ method: "GET", path: "/apis/example.com/v1" }))).code).toBe("NotFound");
    plain("default backend - 404");
    expect((await kubeErrorOf(client.find(leases, ref))).code).toBe("BadAnswer");
  });
});

describe("credentials", () => {
  function rotating(tokens: string[]): ClusterCredentials & { refreshes: number } {
    return {
      ...anonymous(server.url),
      refreshes: 0,
      identity: () => ({ authorization: `Bearer ${tokens[0]}` }),
      refresh() {
        this.refreshes += 1;
        tokens.shift();
      },
    };
  }
  const demand =
    (token: string): NonNullable<FaultServer["always"]> =>
    ({ headers }, response) => {
      if (headers.authorization === `Bearer ${token}`) return false;
      answerStatus(response, 401, "Unauthorized", "Unauthorized");
      return true;
    };

  test("are refreshed after a 401, and the request is repeated, writes included", async () => {
    server.always = demand("new");
    const credentials = rotating(["old", "new"]);
    const renewed = connect(server, { credentials });
    await expect(renewed.create(pods, web)).resolves.toMatchObject({ kind: "Pod" });
    expect(credentials.refreshes).toBe(1);
    await renewed.close();
  });

  test("are Unauthorized if they stay rejected after one retry", async () => {
    server.always = demand("never");
    const refused = connect(server, { credentials: rotating(["old", "other", "third"]) });
    expect((await kubeErrorOf(refused.create(pods, web))).code).toBe("Unauthorized");
    expect(server.requests).toHaveLength(2);
    await refused.close();
  });

  test("are BadCredentials with the reason if they cannot be loaded", async () => {
    const credentials: ClusterCredentials = {
      ...anonymous(server.url),
      identity: () => Promise.reject(new Error("plugin not found")),
    };
    const broken = connect(server, { credentials });
    const error = await kubeErrorOf(broken.get(pods, ref));
    expect(error).toMatchObject({ code: "BadCredentials", cluster: "west" });
    expect(error.detail).toContain("plugin not found");
    await broken.close();
  });
});

describe("requests on the wire", () => {
  test("reuse their connections", async () => {
    for (let round = 0; round < 20; round += 1) await client.list(pods);
    // Two, since the next request may begin before the connection of the one before has settled.
    expect(server.connections).toBeLessThanOrEqual(2);
  });

  test("carry unknown fields, long integers and 1.5 MB both ways to the byte", async () => {
    const text = `{"metadata":{"namespace":"default","name":"big"},"x-new":{"n":9007199254740993,"s":"${"ä".repeat(750_000)}"}}`;
    const { parseJson } = await import("../../../src/kube/json.ts");
    const object = parseJson(text);
    await client.raw({ method: "POST", path: "/api/v1/namespaces/default/pods", body: Object(object) });
    expect(server.requests[0]?.body).toBe(text);
    server.always = (_request, response) => {
      response.writeHead(200).end(text);
      return true;
    };
    expect(JSON.stringify(await client.raw({ method: "GET", path: "/x" }))).toBe(text);
  });

  test("encode names and selectors", async () => {
    await client.list(pods, {
      namespace: "a b",
      labelSelector: "x in (y,z)",
      fieldSelector: "spec.nodeName=n",
      limit: 5,
    });
    await kubeErrorOf(client.get(pods, { namespace: "default", name: "../secrets/x" }));
    expect(server.requests[0]).toMatchObject({ path: "/api/v1/namespaces/a%20b/pods" });
    expect(server.requests[0]?.query.get("labelSelector")).toBe("x in (y,z)");
    expect(server.requests[1]?.path).toBe("/api/v1/namespaces/default/pods/..%2Fsecrets%2Fx");
  });

  test("send uid and resourceVersion of a delete as preconditions", async () => {
    server.world.put({ ...web, metadata: { ...web.metadata, uid: "u" } });
    await client.delete(pods, ref, { uid: "u", gracePeriodSeconds: 0, propagationPolicy: "Background" });
    expect(JSON.parse(server.requests[0]?.body ?? "")).toEqual({
      apiVersion: "v1",
      kind: "DeleteOptions",
      gracePeriodSeconds: 0,
      preconditions: { uid: "u" },
      propagationPolicy: "Background",
    });
  });

  test.each([
    ["json", "application/json-patch+json"],
    ["merge", "application/merge-patch+json"],
    ["strategic", "application/strategic-merge-patch+json"],
    ["apply", "application/apply-patch+yaml"],
  ] as const)("send a %s patch as %s", async (type, contentType) => {
    const answer = only("write", (_request, response) => {
      answerJson(response, 200, server.world.put(web));
      return true;
    });
    server.faults.push(answer);
    const patch = type === "json" ? { type, body: [] } : { type, body: {} };
    await client.patch(pods, ref, patch, { fieldManager: "legation", subresource: "status" });
    expect(server.requests[0]?.headers["content-type"]).toBe(contentType);
    expect(server.requests[0]?.path).toBe("/api/v1/namespaces/default/pods/web/status");
    expect(server.requests[0]?.query.get("fieldManager")).toBe("legation");
  });
});
