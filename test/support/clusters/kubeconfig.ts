/** The content of a kubeconfig with one context. */
export interface KubeconfigFields {
  readonly name: string;
  readonly server: string;
  /** PEM. */
  readonly caData: string;
  /** File to read the authority from in place of `caData`. */
  readonly caFile?: string;
  readonly user: string;
  readonly token: string;
}

/** A kubeconfig as JSON, which is YAML too. */
export function kubeconfigText({ name, server, caData, caFile, user, token }: KubeconfigFields): string {
  const authority =
    caFile === undefined
      ? { "certificate-authority-data": Buffer.from(caData).toString("base64") }
      : { "certificate-authority": caFile };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, ...authority } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name, context: { cluster: name, user } }],
    "current-context": name,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
