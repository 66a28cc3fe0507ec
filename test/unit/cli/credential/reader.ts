import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import { bearerToken } from "../../../support/builders/token.ts";
import { recordedSession } from "../session.ts";

export const OWN: string = pem("b3du");
export const OTHER: string = pem("b3RoZXI=");
export const token: string = bearerToken({ exp: 1_770_000_000 });
export const MEMBER = "/apis/access.legation.dev/v1/clusters/west/proxy";

function pem(body: string): string {
  return `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
}

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function kubeconfig(user: object, cluster: object = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "legation-credential-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "config.yaml");
  const document = {
    clusters: [
      { name: "host", cluster: { server: "https://host:6443", "certificate-authority-data": base64(OWN), ...cluster } },
    ],
    users: [{ name: "kueue", user }],
    contexts: [{ name: "host", context: { cluster: "host", user: "kueue" } }],
    "current-context": "host",
  };
  writeFileSync(file, JSON.stringify(document));
  return file;
}

interface Asked {
  readonly cluster?: object | undefined;
  readonly user?: object;
  readonly flags?: readonly string[];
  readonly info?: string;
}

/** Runs the command as a plugin of a client that wants to send the credential to `cluster`. */
export async function ask({ cluster = {}, user = { token }, flags = [], info }: Asked): Promise<{
  readonly code: number;
  readonly out: string;
  readonly err: string;
}> {
  const wanted = { server: `https://host:6443${MEMBER}`, "certificate-authority-data": base64(OWN), ...cluster };
  const document = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", spec: { cluster: wanted } };
  const session = recordedSession({ env: { KUBERNETES_EXEC_INFO: info ?? JSON.stringify(document) } });
  const code = await runProgram(["credential", "--kubeconfig", kubeconfig(user), ...flags], session, "1.0.0");
  return { code, out: session.out.join(""), err: session.err.join("") };
}
