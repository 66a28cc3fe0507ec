import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { isKubeError } from "../../../src/kube/errors.ts";

export const PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";

export interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly name?: string;
}

/** A kubeconfig with one context, cluster and user, all of one name. */
export function config({ cluster = {}, user = { token: "t" }, context = {}, name = "west" }: Parts = {}): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: "https://10.0.0.1:6443/", ...cluster } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, ...context } }],
    "current-context": name,
  };
}

/** A folder of kubeconfigs, and of what they name. */
export class KubeconfigFolder {
  readonly folder: string = mkdtempSync(join(tmpdir(), "legation-kubeconfig-"));

  write(name: string, content: object | string): string {
    const path = join(this.folder, name);
    writeFileSync(path, typeof content === "string" ? content : stringify(content));
    return path;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

/** The message of the error that `load` throws. */
export function problemOf(load: () => unknown): string {
  try {
    load();
  } catch (error) {
    if (isKubeError(error, "BadCredentials")) return `${error.resource}: ${error.detail}`;
    throw error;
  }
  throw new Error("expected an error");
}
