import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessAccountName, clusterProxyPath } from "../../../src/api/access.ts";
import { apiRequest } from "../clusters/api-request.ts";
import { kubeconfigText } from "../clusters/kubeconfig.ts";
import { Authority } from "../clusters/pki.ts";
import type { Cluster } from "../clusters/types.ts";
import { afterFile } from "../harness/after-file.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { legation } from "./cli.ts";

const API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1.access.legation.dev";
const ACCOUNT = accessAccountName("test");

/** Installs access to members, served at this port of the machine. */
export async function installAccess(host: Cluster, port: number): Promise<void> {
  await legation(["install", "--access", `--access-address=localhost:${port}`, `--kubeconfig=${host.kubeconfig}`]);
}

/** Resolves once the host's API server passes requests on. */
export async function accessAvailable(host: Cluster): Promise<void> {
  await eventually(() => isDiscovered(host), { timeoutMs: 60_000, what: "access.legation.dev is served" });
}

async function isDiscovered(host: Cluster): Promise<boolean> {
  const { status } = await apiRequest(host, "GET", "/apis/access.legation.dev/v1");
  return status === 200;
}

/** Takes the APIService away: the host deletes no namespace while an aggregated API has no server. */
export async function withdrawAccess(host: Cluster): Promise<void> {
  const { status, text } = await apiRequest(host, "DELETE", API_SERVICE);
  if (status !== 200 && status !== 404) throw new Error(`${API_SERVICE}: ${text}`);
}

/**
 * Lets users of the host into a member until the end of the file: an account there that may impersonate, its credentials on the
 * host, and the prefix.
 */
export async function openMember(host: Cluster, member: Cluster, name: string, prefix = "legation:"): Promise<void> {
  afterFile(() => closeMember(host, member, name));
  const namespace = "legation-system";
  const metadata = { name: ACCOUNT };
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: ACCOUNT };
  await applyAll(member, [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...metadata, namespace } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata,
      rules: [
        { apiGroups: [""], resources: ["users", "groups"], verbs: ["impersonate"] },
        { apiGroups: ["authentication.k8s.io"], resources: ["*"], verbs: ["impersonate"] },
      ],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata,
      roleRef,
      subjects: [{ kind: "ServiceAccount", name: ACCOUNT, namespace }],
    },
  ]);
  const token = (await kubectl(member, ["create", "token", ACCOUNT, "-n", namespace, "--duration=24h"])).trim();
  const text = kubeconfigText({ name, server: member.proxiedServer, caData: member.caData, user: ACCOUNT, token });
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: `member-${name}`, namespace: "legation-access" },
    data: { kubeconfig: Buffer.from(text).toString("base64") },
  };
  await applyAll(host, [secret]);
  const spec = JSON.stringify({ spec: { access: { prefix } } });
  await kubectl(host, ["patch", `clusters.legation.dev/${name}`, "--type=merge", "-p", spec]);
}

async function closeMember(host: Cluster, member: Cluster, name: string): Promise<void> {
  const remove = (cluster: Cluster, ...what: string[]): Promise<string> =>
    kubectl(cluster, ["delete", ...what, "--ignore-not-found"]);
  const spec = JSON.stringify({ spec: { access: null } });
  await kubectl(host, ["patch", `clusters.legation.dev/${name}`, "--type=merge", "-p", spec]);
  await remove(host, "secret", `member-${name}`, "-n", "legation-access");
  await remove(member, `clusterrolebinding/${ACCOUNT}`, `clusterrole/${ACCOUNT}`);
  await remove(member, `serviceaccount/${ACCOUNT}`, "-n", "legation-system");
}

/** Binds a ClusterRole to a user or group until the end of the file. */
export async function bindClusterRole(cluster: Cluster, role: string, subject: Subject): Promise<void> {
  const name = `${role}-${subject.name.replace(/[^a-z]/g, "-")}`;
  afterFile(async () => {
    await kubectl(cluster, ["delete", `clusterrolebinding/${name}`, "--ignore-not-found"]);
  });
  await applyAll(cluster, [clusterRoleBinding(name, role, subject)]);
}

interface Subject {
  readonly kind: "User" | "Group";
  readonly name: string;
}

/** Returns the object that gives a ClusterRole in all namespaces. */
export function clusterRoleBinding(name: string, role: string, subject: Subject): object {
  const apiGroup = "rbac.authorization.k8s.io";
  return {
    apiVersion: `${apiGroup}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup, kind: "ClusterRole", name: role },
    subjects: [{ apiGroup, ...subject }],
  };
}

/** A user of the host, by a client certificate. */
export interface HostUser {
  readonly name: string;
  readonly certificate: string;
  readonly key: string;
  /** Kubeconfig whose server is the host's API server. */
  readonly kubeconfig: string;
  /** Kubeconfig whose server is a member's, through the host. */
  kubeconfigOf(member: string): string;
}

/** Creates a user of the host, in one group, without any rights. */
export async function createUser(host: Cluster, name: string, group: string): Promise<HostUser> {
  const pki = join(host.directory, "pki");
  const authority = Authority.from({ certificate: host.caData, key: readFileSync(join(pki, "ca.key"), "utf8") });
  const { certificate, key } = await authority.issue({ commonName: name, organization: group, usage: "clientAuth" });
  const written = new Set<string>();
  const write = (context: string, path: string): string => {
    const file = join(host.directory, `${name}-${context}.kubeconfig`);
    // A kubectl that reads it may run.
    if (written.has(file)) return file;
    written.add(file);
    const server = `${host.server}${path}`;
    const config = JSON.parse(kubeconfigText({ name: context, server, caData: host.caData, user: name, token: "" }));
    const encoded = (pem: string): string => Buffer.from(pem).toString("base64");
    config.users[0].user = { "client-certificate-data": encoded(certificate), "client-key-data": encoded(key) };
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
    return file;
  };
  return {
    name,
    certificate,
    key,
    kubeconfig: write("host", ""),
    kubeconfigOf: (member) => write(member, clusterProxyPath(member)),
  };
}
