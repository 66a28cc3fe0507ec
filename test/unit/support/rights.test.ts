import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ClusterInfo } from "../../support/clusters/types.ts";
import { noteRights, RIGHTS_FOLDER, readNoted } from "../../support/rights/used.ts";

const MINUTE = 60;
const controller = "system:serviceaccount:legation-system:legation-controller";
const agent = "system:serviceaccount:legation-system:legation-agent-1f0c2a9b";
const before = process.env[RIGHTS_FOLDER];
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "legation-noted-"));
  process.env[RIGHTS_FOLDER] = join(directory, "rights");
});
afterEach(() => {
  rmSync(directory, { recursive: true });
  if (before === undefined) delete process.env[RIGHTS_FOLDER];
  else process.env[RIGHTS_FOLDER] = before;
});

/** Returns a line of an audit log; `at` in seconds. */
function request(at: number, user: string, verb: string, resource: string, forbidden = false): string {
  const moment = new Date(at * 1000).toISOString();
  return JSON.stringify({
    stage: "ResponseComplete",
    verb,
    requestURI: `/${resource}`,
    user: { username: user },
    objectRef: {
      resource,
      ...(resource === "roles" ? { apiGroup: "rbac.authorization.k8s.io", name: "legation-controller" } : {}),
    },
    responseStatus: { code: forbidden ? 403 : 200 },
    annotations: { "authorization.k8s.io/decision": forbidden ? "forbid" : "allow" },
    requestReceivedTimestamp: moment,
    stageTimestamp: moment,
  });
}

test("records attempts while the account has its rights, and none before or after", async () => {
  const lines = [
    request(0, controller, "list", "nodes", true),
    request(1, "admin", "patch", "roles"),
    request(2, controller, "list", "pods", true),
    request(2 * MINUTE, controller, "list", "services", true),
    request(2 * MINUTE, controller, "get", "pods"),
    request(2 * MINUTE, agent, "get", "secrets"),
    request(2 * MINUTE, "somebody", "list", "secrets", true),
    request(3 * MINUTE, "admin", "delete", "roles"),
    request(4 * MINUTE, controller, "list", "configmaps", true),
    request(5 * MINUTE, "admin", "create", "roles"),
    request(6 * MINUTE, controller, "watch", "services", true),
  ];
  const auditLog = join(directory, "audit.log");
  writeFileSync(auditLog, `${lines.join("\n")}\n`);
  await noteRights([{ name: "host", auditLog } as ClusterInfo]);
  expect(readNoted(join(directory, "rights"))).toEqual({
    used: ["agent: get secrets", "controller: get pods"],
    forbidden: ["controller: list services", "controller: watch services"],
  });
});
