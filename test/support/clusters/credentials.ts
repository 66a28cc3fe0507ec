import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ClusterFiles, PLANE_USERS } from "./flags.ts";
import { kubeconfigText } from "./kubeconfig.ts";
import { Authority, newServiceAccountKey } from "./pki.ts";

const API_DNS_NAMES = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

// Users and groups of programs on real nodes. No default role is CoreDNS'.
const NODE_USERS = { "kube-proxy": ["system:kube-proxy", ""], coredns: ["coredns", "system:masters"] };

function newToken(): string {
  return randomBytes(16).toString("hex");
}

/** Certificates and keys; returns the authority's PEM. */
export async function writePki(directory: string, name: string, slot: number): Promise<string> {
  const pki = join(directory, "pki");
  mkdirSync(pki, { recursive: true });
  const write = (file: string, text: string): void => writeFileSync(join(pki, file), text, { mode: 0o600 });
  const [authority, accountKey] = await Promise.all([Authority.create(`${name} test cluster`), newServiceAccountKey()]);
  const [serving, kubeletClient] = await Promise.all([
    authority.issue({
      commonName: "kube-apiserver",
      usage: "serverAuth",
      // The last is the name of the node as kind has it.
      dnsNames: [...API_DNS_NAMES, `${name}-control-plane`],
      // The second is the service address that pods know.
      addresses: ["127.0.0.1", `10.${96 + slot}.0.1`],
    }),
    authority.issue({
      commonName: "kube-apiserver-kubelet-client",
      organization: "system:masters",
      usage: "clientAuth",
    }),
  ]);
  write("ca.crt", authority.pem);
  write("ca.key", authority.key);
  write("apiserver.crt", serving.certificate);
  write("apiserver.key", serving.key);
  write("kubelet-client.crt", kubeletClient.certificate);
  write("kubelet-client.key", kubeletClient.key);
  write("service-account.key", accountKey.privateKey);
  write("service-account.pub", accountKey.publicKey);
  return authority.pem;
}

/** The subject of the credentials, and the cluster's files. */
export interface CredentialsSpec {
  readonly name: string;
  /** PEM. */
  readonly caData: string;
  readonly proxiedServer: string;
  /** A real node, and the API server's address as that node sees it. */
  readonly node?: { readonly name: string; readonly server: string };
}

/** Kubeconfigs and the token file; returns admin's token. */
export function writeCredentials(files: ClusterFiles, spec: CredentialsSpec): string {
  const { directory, apiPort } = files;
  const { name, caData, proxiedServer, node } = spec;
  const server = `https://127.0.0.1:${apiPort}`;
  const write = (file: string, text: string): void => writeFileSync(join(directory, file), text, { mode: 0o600 });
  const adminToken = newToken();
  const rows = [`${adminToken},admin,admin,"system:masters"`];
  for (const [plane, { user, group }] of Object.entries(PLANE_USERS)) {
    const planeToken = newToken();
    rows.push(`${planeToken},${user},${user},"${group}"`);
    write(`${plane}.kubeconfig`, kubeconfigText({ name, server, caData, user, token: planeToken }));
  }
  if (node !== undefined) {
    const users = { kubelet: [`system:node:${node.name}`, "system:nodes"], ...NODE_USERS };
    for (const [program, [user = "", group = ""]] of Object.entries(users)) {
      const token = newToken();
      rows.push(`${token},${user},${user},"${group}"`);
      write(`${program}.kubeconfig`, kubeconfigText({ name, server: node.server, caData, user, token }));
    }
  }
  write("tokens.csv", `${rows.join("\n")}\n`);
  const admin = { name, caData, user: "admin", token: adminToken };
  write("kubeconfig", kubeconfigText({ ...admin, server }));
  write("proxied.kubeconfig", kubeconfigText({ ...admin, server: proxiedServer }));
  return adminToken;
}
